// Where the stages of a plan stand, and which activations cross between segments.
#pragma once

#include <vector>

#include "strategies/lower/grid.hpp"
#include "strategies/lower/segment.hpp"

namespace stratagem::strategies {

/// The stages of a plan on their grids. Throws InputError for plans that lowering cannot take (see
/// lower.hpp).
class Stages {
 public:
  explicit Stages(const Plan& plan);

  [[nodiscard]] int count() const { return static_cast<int>(grids_.size()); }
  [[nodiscard]] int of(int segment) const { return of_segment_[segment]; }
  [[nodiscard]] const Grid& grid(int stage) const { return grids_[stage]; }
  [[nodiscard]] const Grid& grid_of_segment(int segment) const {
    return grids_[of_segment_[segment]];
  }
  [[nodiscard]] const SegmentFacts& facts(int segment) const { return facts_[segment]; }
  [[nodiscard]] const std::vector<SegmentFacts>& facts() const { return facts_; }
  /// The segment that computes an activation which leaves it, and the one that reads it.
  [[nodiscard]] int producer(model::TensorId activation) const { return producer_.at(activation); }
  [[nodiscard]] int reader(model::TensorId activation) const { return reader_.at(activation); }
  /// By device: its stage.
  [[nodiscard]] const std::vector<int>& of_devices() const { return of_device_; }

 private:
  void place_segments(const Plan& plan);
  void place_devices();
  void check_borders(const model::Graph& graph);

  std::vector<SegmentFacts> facts_;
  std::vector<Grid> grids_;
  std::vector<int> of_segment_;
  std::vector<int> of_device_;
  std::map<model::TensorId, int> producer_;
  std::map<model::TensorId, int> reader_;
};

}  // namespace stratagem::strategies
