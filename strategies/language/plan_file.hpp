// A plan that a user wrote: stages, copies, and primitives over selectors, in JSON.
#pragma once

#include "base/json_reader.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// Reads and checks a whole plan file for a model; docs/reference/plan-language.md has the format.
/// `graph` must outlive the plan. Throws InputError with the file and the path of the primitive.
Plan read_plan(const JsonReader& file, const model::Graph& graph, int micro_batches);
/// The same without the op-orders of cells that stand behind the first `primitives` primitives.
Plan read_plan(const JsonReader& file, const model::Graph& graph, int micro_batches,
               std::size_t primitives);

/// Among how many ranks a plan file divides the samples of a micro-batch: the parts along "b" of
/// the operator that has most of them (experts that are divided have fewer). `given` may be of any
/// batch.
int batch_ranks(const JsonReader& file, const model::Graph& given);

}  // namespace stratagem::strategies
