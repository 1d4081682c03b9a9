// A run from its settings to its metrics: plan, program, cast, prices, timeline.
#include "base/quantity_text.hpp"
#include "search/scenario.hpp"
#include "sim/engine.hpp"
#include "strategies/all.hpp"
#include "strategies/lower.hpp"

namespace stratagem::search {

Simulated simulate(const Run& run, const SimulateOptions& options) {
  const strategies::Plan plan = strategies::compose(run.graph, run.micro_batches, run.options, run.strategy);
  Simulated result{.program = strategies::lower(plan, run.stack), .timeline = {}, .outcome = {}};
  const sim::Cast cast = sim::cast(result.program, run.cluster, run.profile.collective, options.folded);
  const sim::Prices prices = sim::price(result.program, run.profile, run.stack);
  result.timeline = sim::run_until_steady(result.program, cast, prices);
  Outcome& outcome = result.outcome;
  outcome.gpus = run.options.devices();
  outcome.metrics = sim::metrics(result.program, result.timeline);
  const Bytes needed = outcome.metrics->peak.total + run.profile.context.value;
  if (needed > run.profile.memory.value) {
    outcome.status = Outcome::Status::out_of_memory;
    outcome.reason = "needs " + to_text(needed) + ", a GPU has " + to_text(run.profile.memory.value);
  }
  return result;
}

}  // namespace stratagem::search
