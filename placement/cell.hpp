// A cell, the unit of scheduling: one pass of one stage on one micro-batch, or on a slice or repeat
// of it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace stratagem::placement {

/// F, B, W. Where a stage's backward pass of a micro-batch is split, B holds its input gradients
/// and W its weight gradients; else B holds both and there is no W.
enum class CellPass : std::uint8_t { forward, backward, weight };
std::string to_text(CellPass);

/// What op-order puts in sequence. A stage may be any run of segments, on one device or many.
struct Cell {
  int stage = 0;
  int micro_batch = 0;
  CellPass pass = CellPass::forward;
  int slice = 0;   ///< of the micro-batch's tokens; 0 where they are not sliced
  int repeat = 0;  ///< of the forward pass, for models that run it several times before B
  friend auto operator<=>(const Cell&, const Cell&) = default;
};
/// "F(stage 1, micro-batch 3)"; slice and repeat are told where they are not 0.
std::string to_text(const Cell&);

/// op-order: `after` begins when `before` has ended.
struct Order {
  Cell before;
  Cell after;
};

}  // namespace stratagem::placement
