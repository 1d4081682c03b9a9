// Reads the "strategy" object of a scenario by the declarations of all strategies.
#pragma once

#include <optional>

#include "base/json_reader.hpp"
#include "strategies/parallel/options.hpp"

namespace stratagem::strategies {

/// Lets each strategy complete what it declares, too. Of so many GPUs those that the other degrees
/// leave are data ranks, if it does not say how many and that is a whole number. Throws InputError.
Options read_options(const JsonReader& reader, std::optional<int> gpus = {});

}  // namespace stratagem::strategies
