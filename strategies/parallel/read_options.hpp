// Reads the "strategy" object of a scenario by the declarations of all strategies.
#pragma once

#include <optional>

#include "base/json_reader.hpp"
#include "strategies/parallel/options.hpp"

namespace stratagem::strategies {

/// Reads the keys of every strategy, then lets each complete what follows from all of them. If the
/// object does not say how many data ranks there are, they take the GPUs that the other degrees
/// leave. Throws InputError.
Options read_options(const JsonReader& reader, std::optional<int> gpus = {});

/// Refuses a strategy on a cluster with another number of GPUs than its degrees take.
[[noreturn]] void refuse_gpus(const JsonReader& strategy, int gpus, const Options& options);

}  // namespace stratagem::strategies
