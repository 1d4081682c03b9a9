// Counts owners from the cells of all sequences.
#include "program/buffer_owners.hpp"

#include <algorithm>

namespace stratagem::program {

BufferOwners::BufferOwners(const Program& program) {
  for (const Sequence& sequence : program.sequences) {
    for (const Call& call : sequence.calls) {
      slices_ = std::max(slices_, call.cell.slice + 1);
      repeats_ = std::max(repeats_, call.cell.repeat + 1);
      micro_batches_ = std::max(micro_batches_, call.cell.micro_batch + 1);
    }
  }
}

int BufferOwners::of(const placement::Cell& cell) const {
  const int repeat = cell.pass == placement::CellPass::forward ? cell.repeat : repeats_ - 1;
  return (cell.micro_batch * slices_ + cell.slice) * repeats_ + repeat;
}

}  // namespace stratagem::program
