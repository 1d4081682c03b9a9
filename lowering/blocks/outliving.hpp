// The buffers of a pass that later blocks read.
#pragma once

#include <map>

#include "lowering/blocks/connections.hpp"

namespace stratagem::lowering {

class Outliving {
 public:
  Outliving(const BlockContext& context, BlockDrafts& blocks, Connections& connections)
      : c_(context), graph_(context.graph), blocks_(blocks), connections_(connections) {}

  /// Turns a tensor that leaves the segment into full values; it outlives the blocks.
  void leave(model::TensorId tensor, program::Category category);
  /// A tensor that the backward pass reads outlives the blocks, if it was made here.
  void keep(model::TensorId tensor, program::Category category);
  /// Keeps the devices' parts of a checkpoint that the plan divides, and frees the whole; false if
  /// it lies nowhere whole along the plan's axes.
  bool keep_part(model::TensorId tensor, program::Category category);
  /// Keeps of an imported tensor the version that is whole, if only a part was given.
  void keep_whole(model::TensorId tensor, program::Category category);
  /// An imported tensor that others still need.
  void spare(model::TensorId tensor);
  /// What later blocks read, as they find it, by place in the segment's table.
  [[nodiscard]] const std::map<int, Border>& out() const { return out_; }

 private:
  [[nodiscard]] placement::Distribution smallest(model::TensorId tensor) const;
  [[nodiscard]] bool read_backward(model::TensorId tensor,
                                   const placement::Distribution& version) const;
  void keep_version(model::TensorId tensor, const placement::Distribution& version,
                    program::Category category);

  const BlockContext& c_;
  const model::Graph& graph_;
  BlockDrafts& blocks_;
  Connections& connections_;
  std::map<int, Border> out_;
};

}  // namespace stratagem::lowering
