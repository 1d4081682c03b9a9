// A block that has been lowered, what it is lowered from, and how tensors lie at its borders.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cost/precision.hpp"
#include "cost/stack.hpp"
#include "lowering/blocks/recomputation.hpp"
#include "lowering/blocks/slices.hpp"
#include "lowering/stages/groups.hpp"
#include "lowering/stages/segment.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

/// The distribution of a tensor on any copy of a stage, and its memory category: a layout, or, if
/// the stage lists its devices, what each of them holds, if anything, by position.
struct Border {
  placement::Layout layout;
  program::Category category = program::Category::temporaries;
  std::vector<std::optional<placement::Mask>> masks = {};
};

Border border_of(const placement::Distribution& distribution, const placement::Grid& grid,
                 program::Category category);
/// On the copy that stands on `grid`.
placement::Distribution distribution_at(const Border& border, const placement::Grid& grid);

/// A lowered block with what its neighbours need to know. Tensors are places in the segment's
/// table.
struct LoweredBlock {
  program::Block block;
  std::map<int, Border> out;  ///< tensors that later blocks read, with their layouts
  /// By tensor from outside: the first task of every stream that reads it.
  std::map<int, std::map<program::Stream, int>> first_readers;
  std::map<int, int> last_writer;  ///< by tensor: the last task that writes it
  /// By gradient of a parameter: the first task that adds to it.
  std::map<int, int> first_addition;
  std::map<int, int> parts;  ///< by tensor of which only a part is kept: what copies it
  std::map<int, placement::Layout> parameters;  ///< by parameter: how operators here see it
  /// By gradient of a parameter: how operators here leave it.
  std::map<int, placement::Layout> gradients;
  /// The parameters and gradients that exist only while they are whole:
  /// parameters that must have been gathered, and gradients that outlive the block until they are
  /// reduced or have left for the host.
  std::set<int> gathered;
  std::set<int> whole_gradients;
  // The same two where the stage is irregular, for the one device that runs the block.
  std::map<int, placement::Mask> parameter_masks;
  /// What each operator adds to it.
  std::map<int, std::map<model::OpId, placement::Mask>> gradient_masks;
};

/// The blocks of a pass of a segment, by position of the device in its replica; one for all devices
/// if its stage stands on a grid of axes. `out` of the blocks is empty: what leaves the segment is
/// on all of them.
struct LoweredPass {
  std::vector<LoweredBlock> blocks;
  std::map<int, Border> out;  ///< tensors that later blocks read
};

/// What a block is lowered from.
struct BlockContext {
  const strategies::Plan& plan;
  const model::Graph& graph;  ///< the plan's, sized for the slice
  const TokenSlice& slice;
  const cost::Stack& stack;
  const cost::Precision& precision;
  const placement::Grid& grid;
  Groups& groups;
  const SegmentFacts& facts;
  const Recomputation& recomputation;
  int replica = 0;  ///< of `grid`
  int copy = 0;     ///< that it is of
};

}  // namespace stratagem::lowering
