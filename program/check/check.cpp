// The checks in order: each may rely on those before it.
#include "program/check/check.hpp"

#include "base/input_error.hpp"
#include "program/buffers.hpp"
#include "program/check/arrivals.hpp"
#include "program/check/deadlock.hpp"
#include "program/check/references.hpp"
#include "program/check/rendezvous.hpp"

namespace stratagem::program {
namespace {

/// Throws InputError if a task of a sequence, in program order, allocates a buffer twice, reads one
/// that was never written, uses or frees one that is not allocated, or if one stays allocated at
/// the end. A buffer that outlives its call must be the only one that is known by its owner and
/// tensor (program/buffers.hpp). Residents are always there. Expects check_references.
void check_lives(const Program& program) {
  for (const Sequence& sequence : program.sequences) {
    const Buffers buffers(program, sequence);
    if (const auto& misuse = buffers.misuse()) {
      const Block& block = program.blocks[sequence.calls[misuse->task.call].block];
      throw InputError("", "", "buffer " + block.slots[misuse->slot].name + " " + misuse->promise,
                       "otherwise at " + describe(program, sequence, misuse->task));
    }
    if (const auto number = buffers.undying()) {
      const Buffer buffer = buffers[*number];
      throw InputError("", "", "buffers to be freed when nothing needs them any more",
                       buffer.slot->name + " alive at the end, from " +
                           describe(program, sequence, *buffer.born));
    }
  }
}

}  // namespace

void check(const Program& program) {
  check_references(program);
  const Rendezvous rendezvous(program);
  check_deadlock(program, rendezvous);
  check_arrivals(program, rendezvous);
  check_lives(program);
}

}  // namespace stratagem::program
