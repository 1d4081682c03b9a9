// The parameters that operators of a block read, and the gradients that they add to: buffers that
// outlive calls, or are whole for one block only.
#pragma once

#include <map>
#include <optional>

#include "lowering/blocks/block_draft.hpp"
#include "lowering/blocks/lowered_block.hpp"

namespace stratagem::lowering {

class BlockWeights {
 public:
  /// Tells the block's neighbours how operators see parameters and leave gradients.
  BlockWeights(const BlockContext& context, BlockDraft& block)
      : c_(context), block_(block), lowered_(block.lowered()) {}

  /// A gradient that an earlier block has begun to sum up.
  void import(const SlotName& gradient, const placement::Part& part);
  /// Makes a task, which is about to be added, read a parameter. Throws InputError if another
  /// operator here sees another part of it.
  void read(program::Task& task, const SlotName& parameter, const placement::Part& part);
  /// Makes it add to a parameter's gradient, for an operator.
  void add(program::Task& task, const SlotName& gradient, const placement::Part& part,
           model::OpId op);
  /// The buffer in which a parameter is whole for this block, if it is not always.
  std::optional<int> gathered(const SlotName& parameter, const placement::Part& part);
  /// Has a parameter gathered, too, that operators of a module read which frameworks gather as a
  /// whole. If no task here reads it, the last one frees it.
  void gather(const SlotName& parameter, const placement::Part& part);
  /// Do gradients of parameters that operators here leave so live only until they are reduced?
  [[nodiscard]] bool keeps_nothing_whole(const placement::Part& part) const;
  /// The buffer of this block in which a parameter or gradient is, if there is one.
  [[nodiscard]] std::optional<int> slot_of(model::TensorId tensor) const;
  [[nodiscard]] bool is_gradient_of_parameter(model::TensorId tensor) const;

 private:
  int whole_gradient(const SlotName& gradient, const placement::Part& part);
  void see(const SlotName& parameter, const placement::Part& part);
  [[nodiscard]] std::vector<int> axes(const placement::Part& part,
                                      strategies::Keep::What what) const;

  const BlockContext& c_;
  BlockDraft& block_;
  LoweredBlock& lowered_;
  std::map<model::TensorId, int> whole_;  ///< slots of gathered parameters and whole gradients
};

}  // namespace stratagem::lowering
