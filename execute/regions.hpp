// Which part of a tensor a device has where a task names it.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "execute/value.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// Of one device. Weights and their gradients lie where it has them, whatever call comes by.
class Regions {
 public:
  Regions(const program::Program& program, const model::Graph& graph, int device);

  [[nodiscard]] model::TensorId tensor(const program::Call& call,
                                       const program::Operand& operand) const {
    return program::tensor_of(program_, call, operand.tensor);
  }
  [[nodiscard]] Region of(const program::Call& call, const program::Operand& operand) const {
    return on(call, operand, 0, device_);
  }
  /// What another device has, which is that member of the group that the operand's masks are of.
  [[nodiscard]] Region on(const program::Call& call, const program::Operand& operand,
                          std::size_t member, int device) const;

 private:
  const program::Program& program_;
  const model::Graph& graph_;
  int device_;
  std::vector<std::vector<int>> coordinates_;  ///< by grid: of this device, if it stands there
  std::map<model::TensorId, int> grid_of_resident_;  ///< of a parameter and its gradient
  std::set<model::TensorId> in_parts_;  ///< of which every device has a part of its own
};

}  // namespace stratagem::execute
