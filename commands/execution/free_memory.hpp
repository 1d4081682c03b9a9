// Checks before a run whether all ranks have enough memory.
#pragma once

#include <optional>
#include <string>

#include "base/quantity.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::commands {

/// What the system could still give away without swapping: MemAvailable of /proc/meminfo. A
/// container's own limit is not in it. nullopt where the system does not say.
std::optional<Bytes> memory_available();

/// What ranks need on this rank's server, of all of its ranks, or of those on the same `part` of
/// it, a name of up to 39 characters. Called on all ranks.
Bytes needed_on_server(kernels::Communicator& ranks, Bytes of_this_rank,
                       const std::string& part = "");

/// This rank's number among those of its server. Called on all ranks.
int rank_on_server(kernels::Communicator& ranks);

}  // namespace stratagem::commands
