// Who owns a buffer: repeats of slices have separate buffers for the same tensor.
#pragma once

#include "program/program.hpp"

namespace stratagem::program {

/// Numbers the repeats of slices of micro-batches: each has buffers of its own for a tensor that
/// outlives a call. Backward passes are of the last repeat.
class BufferOwners {
 public:
  explicit BufferOwners(const Program& program);
  [[nodiscard]] int count() const { return micro_batches_ * slices_ * repeats_; }
  [[nodiscard]] int of(const placement::Cell& cell) const;

 private:
  int micro_batches_ = 1;
  int slices_ = 1;
  int repeats_ = 1;
};

}  // namespace stratagem::program
