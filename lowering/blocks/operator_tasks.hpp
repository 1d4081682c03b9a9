// The tasks of operators in one block: one kernel for those that the stack fuses.
#pragma once

#include <span>
#include <vector>

#include "lowering/blocks/block_weights.hpp"
#include "lowering/stack/held_inputs.hpp"

namespace stratagem::lowering {

/// An operator as the devices of one block run it.
struct OperatorPart {
  model::OpId id = -1;
  std::vector<placement::Part> reads;   ///< by input
  std::vector<placement::Part> leaves;  ///< by output
  int replicas = 1;                     ///< blocks that leave the same first output
};

class OperatorTasks {
 public:
  /// Adds tasks to `block`.
  OperatorTasks(const BlockContext& context, BlockDraft& block);

  [[nodiscard]] BlockWeights& weights() { return weights_; }
  /// One task for operators of which each reads the first output of the one before it; usually
  /// there is only one. The block holds what they read.
  void run(std::span<const OperatorPart> group, bool recomputed);

 private:
  void read_operands(program::Task& task, const OperatorPart& op, bool inner);
  void write_results(program::Task& task, const OperatorPart& op, bool recomputed);
  void add_temporary(program::Task& task, const OperatorPart& part);
  void hold_operands(program::Task& task, const OperatorPart& op);
  [[nodiscard]] program::Operation operation(const OperatorPart& op) const;
  [[nodiscard]] program::Operand named(model::TensorId tensor, const placement::Part& part,
                                       bool written) const;
  cost::Kernel launched(cost::Kernel kernel, const OperatorPart& part, bool capturable);
  [[nodiscard]] cost::Kernel kernel(std::span<const OperatorPart> group) const;
  [[nodiscard]] bool others_read(model::TensorId tensor, model::OpId reader) const;
  [[nodiscard]] cost::Kernel kernel_alone(const OperatorPart& op) const;
  [[nodiscard]] model::Tensor operand_of(model::TensorId id,
                                         const std::vector<model::Term>& terms) const;

  const BlockContext& c_;
  const model::Graph& graph_;
  BlockDraft& block_;
  BlockWeights weights_;
  HeldSlots held_;
  bool graph_goes_on_ = false;  ///< is the operator before in a CUDA graph?
};

}  // namespace stratagem::lowering
