// Commands that several ranks run together, or one alone.
#pragma once

#include <functional>

#include "base/quantity.hpp"
#include "commands/all.hpp"
#include "kernels/ranks/world.hpp"

namespace stratagem::commands {

/// Does `work`, which returns an exit code, on every rank of this launch; ranks wait `limit` for
/// each other. What is wrong with the input one rank says, by an InputError, while the others throw
/// calibrate::AnotherRankFailed; of a UsageError, which all have, the first one says it. A rank
/// that cannot go on says so and ends all of them with `failed`. Ranks that have nothing to say
/// return `done`: launchers end all ranks when one fails, perhaps before the one that knows why has
/// said it.
int on_ranks(Seconds limit, ExitCode failed, const std::function<int(kernels::World& world)>& work);

}  // namespace stratagem::commands
