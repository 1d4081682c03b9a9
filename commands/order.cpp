// `stratagem order`: the best order of a pipeline's cells.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "report/order_report.hpp"
#include "search/order/pipeline_cells.hpp"
#include "strategies/language/plan_text.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {
namespace {

Options order_options() {
  Options options("stratagem order",
                  "Find the order of a pipeline's cells that repeats in the shortest time.");
  options.text("scenario", "scenario file");
  options.text("run", "the run whose cells to order (default: the first)", "");
  options.text("as-plan",
               "write a plan file with the order, for \"plan\" in place of \"strategy\"");
  options.whole("effort", "millions of steps of the solver for each question", 5);
  add_settings(options);
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

/// The run with a plan of its own in place of its strategy, whose degrees still say which groups
/// have communicators.
study::Run with_plan(const study::Run& run, const std::string& plan) {
  study::Run result = run;
  result.name = "found";
  result.plan = JsonReader::from_text(plan, "the order that was found");
  return result;
}

int run_order(const std::vector<std::string>& line) {
  const Arguments asked(order_options(), line);
  if (asked.helped()) return done;
  constexpr int million = 1'000'000, most = 4'000;
  if (asked.whole("effort") < 1 || asked.whole("effort") > most)
    throw UsageError(fmt::format("--effort: expected 1 to {}", most));
  const study::Scenario scenario = changed_scenario(asked);
  const study::Run& run = chosen_run(scenario, asked);
  std::vector<Output> outputs;
  if (asked.has("as-plan")) outputs.push_back({asked.text("as-plan"), {}});
  check_outputs(outputs, files_of(scenario));
  const strategies::Plan plan = study::plan_of(run);
  search::PipelineCells cells;
  try {
    cells = search::cells_of(run, plan);
  } catch (const InputError& error) {
    throw study::located(run, error);
  }
  std::optional<Progress> progress("looking for an order");
  const auto found = search::best_repetend(
      cells.problem, {.effort = static_cast<unsigned>(asked.whole("effort")) * million});
  progress.reset();
  if (!found) {
    fmt::print("{}", report::no_order(run, cells));
    return check_failed;
  }
  const std::string text = strategies::file_text(search::with_order(plan, cells, *found));
  const study::Outcome own = study::simulate_or_refuse(run, {}).outcome;
  const study::Outcome with_found = study::simulate_or_refuse(with_plan(run, text), {}).outcome;
  const bool fits = with_found.status == study::Outcome::Status::ok;
  if (!fits) outputs.clear();
  for (Output& output : outputs) output.text = text;
  fmt::print(for_people(outputs), "{}", report::order_table(run, cells, *found, own, with_found));
  write_below(outputs);
  return fits ? done : check_failed;
}

}  // namespace

Command order() {
  return {"order", "find the order of a pipeline's cells that repeats in the shortest time",
          &order_options, &run_order};
}

}  // namespace stratagem::commands
