// Compares the memory that a rank of `execute` needs with what there is.
#pragma once

#include "base/quantity.hpp"
#include "commands/arguments.hpp"
#include "commands/execution/device_choice.hpp"
#include "execute/agreement.hpp"
#include "study/run.hpp"

namespace stratagem::commands {

struct Needed {
  Bytes host, gpu;
};

/// By what a rank's program allocates and frees, beside the gradients that the check keeps on the
/// host; the first one also is the one device. A lower bound, as execute::memory_need is.
Needed needed(const execute::Runnable& plan, const execute::Runnable& alone, const Unit& unit,
              int rank);

/// Throws InputError where all ranks here need more than this server, or this rank's GPU, has left,
/// unless told to go on.
void check_room(const study::Run& run, const Arguments& asked, const Unit& unit,
                const Needed& of_rank, const Needed& of_all);

}  // namespace stratagem::commands
