// `stratagem compare`: two traces of one run, task by task, or the runs of a scenario, plan by
// plan.
#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/outputs.hpp"
#include "report/executed_plans.hpp"
#include "report/traces/comparison.hpp"

namespace stratagem::commands {
namespace {

/// Fails where a plan computes something else than one device, or takes other memory than
/// predicted.
int compare_plans(const Arguments& asked) {
  if (asked.has("trace")) throw UsageError("--trace is for two traces, not for results of runs");
  const std::vector<std::string> executed = asked.texts("measured");
  const report::ExecutedPlans plans = report::executed_plans(asked.text("predicted"), executed);
  std::vector<Output> outputs;
  if (asked.has("json"))
    outputs.push_back({asked.text("json"), report::to_json(plans).text(2) + "\n"});
  std::vector<std::string> inputs = executed;
  inputs.push_back(asked.text("predicted"));
  check_outputs(outputs, inputs);
  fmt::print(for_people(outputs), "{}", report::to_markdown(plans));
  write_below(outputs);
  return plans.as_expected() ? done : check_failed;
}

int compare_tasks(const Arguments& asked) {
  const std::vector<std::string> files = asked.texts("measured");
  if (files.size() > 1) throw UsageError("one trace of execute is held to one of simulate");
  const report::Trace predicted = report::read_trace(asked.text("predicted"));
  const report::Trace measured = report::read_trace(files.front());
  if (predicted.of.provenance != "predicted" && measured.of.provenance == "predicted")
    throw InputError(predicted.file, "/otherData/provenance", "the predicted trace first",
                     predicted.of.provenance);
  const report::Comparison comparison = report::compare(predicted, measured);
  std::vector<Output> outputs;
  if (asked.has("json"))
    outputs.push_back({asked.text("json"), report::to_json(comparison).text(2) + "\n"});
  if (asked.has("trace"))
    outputs.push_back({asked.text("trace"), report::overlay(predicted, measured),
                       " (open it in https://ui.perfetto.dev)"});
  check_outputs(outputs, {predicted.file, measured.file});
  fmt::print(for_people(outputs), "{}", report::to_text(comparison));
  write_below(outputs);
  return done;
}

Options compare_options() {
  Options options("stratagem compare",
                  "Hold what simulate predicted to what execute measured: two traces, written with "
                  "--trace, task by task; or the runs of a scenario, written with --json, of which "
                  "each may have been executed several times, plan by plan.");
  options.text("predicted", "trace or JSON of simulate");
  options.texts("measured", "trace of execute, or JSON of every execution");
  options.text("json", "write the comparison as JSON");
  options.text("trace", "write both traces as one, device by device");
  options.positional({"predicted", "measured"}, "PREDICTED MEASURED...");
  return options;
}

int run_compare(const std::vector<std::string>& line) {
  const Arguments asked(compare_options(), line);
  if (asked.helped()) return done;
  const std::string predicted = asked.required("predicted");
  if (!asked.has("measured")) throw UsageError("compare with what? name what execute wrote");
  const std::vector<std::string> measured = asked.texts("measured");
  if (!report::is_simulated(predicted) && std::ranges::any_of(measured, &report::is_simulated))
    throw UsageError("the prediction goes first: stratagem compare PREDICTED MEASURED...");
  return report::is_simulated(predicted) ? compare_plans(asked) : compare_tasks(asked);
}

}  // namespace

Command compare() {
  return {"compare", "hold what was predicted of a run to what was measured, task by task",
          &compare_options, &run_compare};
}

}  // namespace stratagem::commands
