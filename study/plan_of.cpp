// Composes a plan from a strategy, or reads a plan file. Lowering names the whole plan "/strategy";
// in a plan file that becomes "/primitives", or the primitive whose orders close a cycle.
#include "study/plan_of.hpp"

#include "strategies/language/plan_file.hpp"
#include "strategies/parallel/all.hpp"
#include "study/order_cycle.hpp"

namespace stratagem::study {

strategies::Plan plan_of(const Run& run) {
  if (run.refused) throw *run.refused;
  if (run.plan) return strategies::read_plan(*run.plan, run.graph, run.micro_batches);
  return strategies::compose(run.graph, run.micro_batches, run.options, run.strategy);
}

InputError located(const Run& run, const InputError& error) {
  if (!error.file.empty()) return error;
  const bool of_the_whole = error.path.empty() || error.path.starts_with("/strategy");
  if (run.plan && of_the_whole) {
    const auto cycle = study::order_cycle(*run.plan, run.graph, run.micro_batches);
    if (cycle) return {run.plan->file(), cycle->path, cycle->expected, cycle->found};
  }
  if (run.plan && (of_the_whole || error.path.starts_with("/primitives"))) {
    return {run.plan->file(), of_the_whole ? "/primitives" : error.path, error.expected,
            error.found};
  }
  return {run.file, run.path + (error.path.empty() ? "/strategy" : error.path), error.expected,
          error.found};
}

}  // namespace stratagem::study
