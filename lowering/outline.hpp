// What is known of a plan before its tasks are put in order: enough to bound its time and memory.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "cost/optimizer.hpp"
#include "cost/stack.hpp"
#include "placement/cell.hpp"
#include "program/program.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// A cell, or a pair of cells that run together, as one device class runs it.
struct OutlinedCell {
  /// A task of one of its blocks.
  struct At {
    std::size_t block = 0;  ///< place in `blocks`
    int task = 0;
    friend auto operator<=>(const At&, const At&) = default;
  };

  placement::Cell cell;  ///< of a pair the first
  int device_class = 0;
  int place = 0;  ///< in one order of all cells, which it has on each of its device classes
  bool pair = false;
  std::vector<int> blocks;    ///< of the program, in order
  std::vector<int> segments;  ///< whose blocks they are
  /// Places of cells, on whatever devices, of which it reads something.
  std::vector<int> reads;
  /// By tensor that comes from another cell: the first task that reads it; and by tensor that goes
  /// to another stage: the last task that writes it.
  std::vector<At> readers;
  std::vector<At> writers;
  bool passes_on = false;  ///< something goes on that it does not write
  /// What the cell's computations leave on each device until the micro-batch's next pass there:
  /// forward until backward, and backward until weight cells where these are apart; and what an
  /// earlier pass left so that is gone when this one ends.
  Bytes leaves;
  Bytes releases;
};

/// What a segment takes of the memory of each device of its stage.
struct OutlinedSegment {
  /// Parameters, gradients and states when the steps begin, of parameters whose first reader in the
  /// stage it is; and two of these alone.
  Bytes at_steps;
  Bytes parameters;
  Bytes gradients;
  /// What its forward pass leaves until its backward pass, with what later segments read of it;
  /// and that alone. Nothing where activations wait elsewhere.
  Bytes leaves;
  Bytes passes_on;
  /// What its backward pass leaves for a weight pass of its own.
  Bytes waits;
};

/// The cells of one iteration, each after what comes before it, and their blocks.
struct Outline {
  program::Program program;  ///< without sequences
  std::vector<OutlinedCell> cells;
  /// By device class, on each device: what lives there from the first iteration to the last, and
  /// what does when the steps begin. Both without what only the finished program knows.
  std::vector<Bytes> always;
  std::vector<Bytes> at_steps;
  std::vector<OutlinedSegment> segments;  ///< by number
};

/// The first passes of lower(), which take a fraction of its time. Throws InputError as they do; a
/// plan that has an outline may still be refused by a later pass.
Outline outline(const strategies::Plan& plan, const cost::Stack& stack,
                const cost::Training& training = {});

}  // namespace stratagem::lowering
