// What a task computes, for `execute` alone: counting time and bytes does not need it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.hpp"
#include "placement/layout.hpp"
#include "placement/mask.hpp"

namespace stratagem::program {

/// A tensor, or a part of it, as a task reads or writes it on every device of its call's grid.
struct Operand {
  int tensor = -1;  ///< as in Slot
  int slot = -1;    ///< of the block; -1: an input of the model, or a resident buffer
  placement::Layout layout = {};
  /// Axes whose ranks share its elements: those of the first in runs of equal length, in the order
  /// of their coordinates (the last may be short), within each run those of the next, and so on.
  std::vector<int> shards = {};
  /// In place of layout and shards, where every device has a block of its own: the part that it
  /// has; for collectives the part of each member of the group, in its order. Numbers of partial
  /// values are only names here, and may change from one task to the next.
  std::vector<placement::Mask> masks = {};
};

enum class Action : std::uint8_t {
  apply,     ///< an operator of the model
  convert,   ///< what a group holds of each input into what it holds of the output of its place
  select,    ///< a part of what is here
  join,      ///< parts of what is here into one, which is zero where there are none
  transfer,  ///< an input leaves for the other device of the group, or an output comes from there
  step       ///< the optimizer: gradient, parameter -> parameter
};

struct Operation {
  Action action = Action::apply;
  /// For `apply`: its place among the forward and then the backward operators of the call's
  /// segment.
  int op = -1;
  std::vector<Operand> inputs = {};  ///< of `select` and `convert` by output
  std::vector<Operand> outputs = {};
  bool adds = false;  ///< to what the outputs hold already, rather than in its place; of `join` to
                      ///< inputs that are of the same elements, as `combine` says
  model::Combine combine = model::Combine::sum;
  /// For `apply` with masks: how many devices compute the same first output.
  int replicas = 1;
};

}  // namespace stratagem::program
