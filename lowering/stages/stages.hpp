// The stages of a plan on their devices, the device classes, and the activations that cross between
// segments.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lowering/stages/segment.hpp"
#include "placement/grid.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// One copy of a stage on its devices.
struct Replica {
  int stage = 0;
  int copy = 0;
  placement::Grid grid;
};

/// Devices that belong to the same replicas, so they run the same cells in the same order. If
/// tensors are redistributed, and on irregular stages, devices do different things, and each device
/// is a class of its own.
struct DeviceClass {
  std::vector<int> replicas;
  std::vector<int> devices;
};

/// How a tensor gets from the devices of one stage to those of another.
enum class StageTransfer : std::uint8_t {
  stays,         ///< the same grid: it stays where it is
  sends,         ///< equal grids apart: every device sends its part to the one with its coordinates
  redistributes  ///< other grids, or some shared devices: see redistribute.hpp
};

/// Data that flows from a stage to another: forward cells follow forward cells, and backward cells
/// the other way round where a gradient returns.
struct StageFlow {
  int from = 0;
  int to = 0;
  bool returns = false;   ///< a gradient flows back
  bool recycled = false;  ///< from one repeat of the forward pass to the next
};

/// A tensor that a segment computes in one repeat of the forward pass and that another segment
/// reads in the next repeat, in place of an input.
struct Recycled {
  model::TensorId tensor = -1;
  int producer = 0;  ///< segments
  int reader = 0;
};

/// The stages of a plan on their grids. Throws InputError for plans that lowering cannot take (see
/// lower.hpp).
class Stages {
 public:
  explicit Stages(const strategies::Plan& plan);

  [[nodiscard]] int count() const { return static_cast<int>(first_replica_.size()); }
  [[nodiscard]] int of(int segment) const { return of_segment_[segment]; }
  [[nodiscard]] const std::vector<Replica>& replicas() const { return replicas_; }
  [[nodiscard]] int replica(int stage, int copy) const { return first_replica_[stage] + copy; }
  /// Do the operators of a stage stand on different devices, or in unequal parts? Then its grid is
  /// only a list of all its devices.
  [[nodiscard]] bool irregular(int stage) const {
    return !replicas_[replica(stage, 0)].grid.listed.empty();
  }
  /// The grid of a segment's stage; copies have equal ones but for the first device.
  [[nodiscard]] const placement::Grid& grid_of_segment(int segment) const {
    return replicas_[replica(of_segment_[segment], 0)].grid;
  }
  [[nodiscard]] const std::vector<DeviceClass>& device_classes() const { return device_classes_; }
  /// The device class of each device.
  [[nodiscard]] const std::vector<int>& class_of_device() const { return class_of_device_; }
  [[nodiscard]] const std::vector<StageFlow>& flows() const { return flows_; }
  [[nodiscard]] const SegmentFacts& facts(int segment) const { return facts_[segment]; }
  [[nodiscard]] const std::vector<SegmentFacts>& facts() const { return facts_; }
  /// A replica on a grid; -1 if there is none.
  [[nodiscard]] int replica_on(const placement::Grid& grid) const {
    const auto found = std::ranges::find(replicas_, grid, &Replica::grid);
    return found == replicas_.end() ? -1 : static_cast<int>(found - replicas_.begin());
  }
  /// How tensors get from one stage to another, for stages between which something flows in either
  /// direction.
  [[nodiscard]] StageTransfer transfer(int from, int to) const {
    return from == to ? StageTransfer::stays : transfers_.at(std::minmax(from, to));
  }
  [[nodiscard]] const std::vector<Recycled>& recycled() const { return recycled_; }
  /// The segment that computes an activation which leaves it, and the one that reads it.
  [[nodiscard]] int producer(model::TensorId activation) const { return producer_.at(activation); }
  [[nodiscard]] int reader(model::TensorId activation) const { return reader_.at(activation); }

 private:
  void place_segments(const strategies::Plan& plan);
  void place_stage(const strategies::Plan& plan, int stage);
  /// Stages whose devices each run something different, so that each device is a class of its own.
  [[nodiscard]] std::set<int> stages_per_device(const strategies::Plan& plan) const;
  void place_devices(const strategies::Plan& plan);
  void find_flows(const model::Graph& graph);
  void find_transfers(const strategies::Plan& plan);
  void find_recycled(const model::Graph& graph);

  std::vector<SegmentFacts> facts_;
  std::vector<Replica> replicas_;   ///< by stage, then copy
  std::vector<int> first_replica_;  ///< by stage: that of copy 0
  std::vector<DeviceClass> device_classes_;
  std::vector<int> of_segment_;
  std::vector<int> class_of_device_;
  std::vector<StageFlow> flows_;
  std::vector<Recycled> recycled_;
  std::map<std::pair<int, int>, StageTransfer> transfers_;  ///< by stages, the lower one first
  std::map<model::TensorId, int> producer_;
  std::map<model::TensorId, int> reader_;
};

}  // namespace stratagem::lowering
