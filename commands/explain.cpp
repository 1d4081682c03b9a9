// `stratagem explain`: prints a run's plan as primitives, or writes it as a plan file.
#include "report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/outputs.hpp"
#include "model/operator_kinds.hpp"
#include "model/written/form.hpp"
#include "strategies/language/plan_text.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {
namespace {

/// A file has tensors of each sample, and none of several samples together.
void refuse_answers(const study::Run& run) {
  static const model::OpKind compares = model::operator_named("pairwise_loss");
  if (std::ranges::count(run.graph->operators, compares, &model::Operator::kind) == 0) return;
  throw InputError(run.origin.file, run.origin.path + "/model/head",
                   "words or values with --as-model: a file cannot have losses of several samples",
                   "reward");
}

std::string model_text(const study::Run& run) {
  refuse_answers(run);
  const auto one = study::graph_of_batch(run, 1), two = study::graph_of_batch(run, 2);
  return model::written(*one, *two);
}

Options explain_options() {
  Options options("stratagem explain",
                  "Print what a run's strategy does, as op-trans, op-assign and op-order.");
  options.text("scenario", "scenario file");
  options.text("run", "the run to explain (default: the first)", "");
  options.text("as-plan", "write a plan file, for \"plan\" in place of \"strategy\"");
  options.text(
      "as-model",
      "write the model as data, for \"model\": {\"family\": \"operators\", \"file\": ...}");
  add_settings(options);
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

int run_explain(const std::vector<std::string>& line) {
  const Arguments asked(explain_options(), line);
  if (asked.helped()) return done;
  const study::Scenario scenario = changed_scenario(asked);
  const study::Run& run = chosen_run(scenario, asked);
  const strategies::Plan plan = study::plan_of(run);
  std::vector<Output> outputs;
  if (asked.has("as-plan")) outputs.push_back({asked.text("as-plan"), strategies::file_text(plan)});
  if (asked.has("as-model")) outputs.push_back({asked.text("as-model"), model_text(run)});
  check_outputs(outputs, files_of(scenario));
  fmt::print(for_people(outputs), "{}", report::explain(run, plan));
  write_below(outputs);
  return done;
}

}  // namespace

Command explain() {
  return {"explain", "print the strategy of a run as primitives, or write it as a plan file",
          &explain_options, &run_explain};
}

}  // namespace stratagem::commands
