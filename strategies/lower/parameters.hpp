// Where parameters are held: on which grids, in which layout.
#pragma once

#include <map>
#include <vector>

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

/// One parameter in the whole plan. On every grid its devices hold it once, however many stages read
/// it there.
struct Holding {
  Layout layout;
  std::vector<Grid> grids;  ///< distinct, by first device
};

/// A parameter on one host: where in the model it is read there.
struct LocalHolding {
  const Holding* holding = nullptr;
  std::vector<int> segments;  ///< ascending
};

class Parameters {
 public:
  /// Throws InputError where two operators see different parts of a parameter.
  Parameters(const Plan& plan, const Stages& stages, const Blocks& blocks);

  [[nodiscard]] const Holding& operator[](model::TensorId parameter) const {
    return holdings_.at(parameter);
  }
  /// What one host holds.
  [[nodiscard]] const std::map<model::TensorId, LocalHolding>& on(int host) const {
    return on_host_[host];
  }

 private:
  std::map<model::TensorId, Holding> holdings_;
  std::vector<std::map<model::TensorId, LocalHolding>> on_host_;
};

}  // namespace stratagem::strategies
