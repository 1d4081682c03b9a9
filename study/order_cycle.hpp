// Which op-order of a plan file closes a cycle.
#pragma once

#include <optional>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "model/graph.hpp"

namespace stratagem::study {

/// The first op-order that contradicts the flow of data and the op-orders before it, as an error at
/// its path that prints a cycle in which it stands. Nothing if none does, or if the plan is refused
/// for something else.
std::optional<InputError> order_cycle(const JsonReader& file, const model::Graph& graph,
                                      int micro_batches);

}  // namespace stratagem::study
