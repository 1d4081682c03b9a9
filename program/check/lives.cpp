// Asks of all buffers what is wrong first.
#include "program/check/lives.hpp"

#include "base/input_error.hpp"
#include "program/buffers.hpp"
#include "program/check/describe.hpp"

namespace stratagem::program {

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

}  // namespace stratagem::program
