// `stratagem search`: the best plans of a space.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity_text.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/jobs.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "commands/ranks/meeting.hpp"
#include "kernels/ranks/world.hpp"
#include "report/html/page.hpp"
#include "report/search_report.hpp"
#include "search/crew.hpp"
#include "search/remote.hpp"
#include "search/sweep.hpp"
#include "search/trial.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {
namespace {

using search::Objective;

const std::vector<std::pair<std::string, Objective>> objectives = {
    {"time", Objective::time}, {"cost", Objective::cost}, {"memory", Objective::memory}};

Options search_options() {
  Options options("stratagem search",
                  "Find the best plans of a space, and prove that no other is better.");
  options.text("scenario", "scenario file with the key \"search\"");
  options.text("for", "the least of what: time of an iteration, cost (time x GPUs), or memory",
               "time");
  options.among({"time", "cost", "memory"});
  options.whole("best", "plans to find", 10);
  options.flag("why",
               "also print where time and memory of the best two plans go, and what twice "
               "as much of each thing would change");
  options.text("store", "SQLite file that keeps what is found: a search that was stopped goes on");
  options.text("json", "write the answer as JSON");
  options.text("report", "write a page with tables and pictures as one HTML file").ending(".html");
  options.text("plans", "write the best plans as a scenario");
  add_jobs(options);
  add_settings(options);
  add_price(options);
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

Objective objective(const Arguments& asked) {
  return std::ranges::find(objectives, asked.text("for"), &std::pair<std::string, Objective>::first)
      ->second;
}

void tell(Progress& progress, const search::Progress& now) {
  const std::string best =
      fmt::format(", best: {}",
                  now.leading == nullptr ? "none yet" : to_text(now.leading->trial.iteration_time));
  const search::Steps steps = search::steps(now);
  progress.tell(steps.words, steps.done, steps.all, best);
}

/// Where plans were found, no output may take the place of a file that these were read from; where
/// none were, there is no scenario to write.
void fill(std::vector<Output>& outputs, const Arguments& asked, const search::Space& space,
          const search::Swept& swept, const std::vector<search::Explanation>& explained,
          std::size_t best) {
  const std::string plans = asked.text_or_nothing("plans");
  if (swept.answers.empty()) {
    std::erase_if(outputs, [&](const Output& output) { return output.file == plans; });
  } else {
    const Json& settings = swept.answers.front().settings;
    check_outputs(outputs, study::run_over(space.defaults(), settings, "best").origin.files);
  }
  for (Output& output : outputs) {
    const std::string folder = std::filesystem::path(output.file).parent_path().string();
    if (output.file == plans) {
      const Json json = report::best_plans(space, swept, best, folder.empty() ? "." : folder);
      output.text = json.text(2) + "\n";
      continue;
    }
    const Json json = report::search_json(space, swept, best, explained);
    output.text = output.file == asked.text_or_nothing("report")
                      ? report::searched_page(space.question(), asked.text("for"), json)
                      : json.text(2) + "\n";
  }
}

/// The search of rank 0, or of one alone.
int lead(const search::Space& space, search::Crew& crew, const Arguments& asked,
         std::vector<Output>& outputs) {
  const auto best = static_cast<std::size_t>(asked.whole("best"));
  std::optional<search::Store> store;
  if (asked.has("store")) store.emplace(asked.text("store"), search::context_of(space));
  const search::SweepOptions how{.objective = objective(asked),
                                 .best = best,
                                 .threads = jobs(asked),
                                 .others = {.store = store ? &*store : nullptr, .crew = &crew}};
  std::optional<Progress> progress("bounding combinations");
  const search::Swept swept =
      search::sweep(space, how, [&](const search::Progress& now) { tell(*progress, now); });
  std::vector<search::Explanation> explained;
  if (asked.has("why")) {
    progress->tell("explaining the best plans");
    explained = search::explain(space, swept, 2, how.threads);
  }
  progress.reset();
  fill(outputs, asked, space, swept, explained, best);
  fmt::print(for_people(outputs), "{}", report::search_table(space, swept, best, explained));
  write_below(outputs);
  return swept.answers.empty() ? check_failed : done;
}

std::vector<Output> outputs_of(const Arguments& asked, const search::Space& space) {
  std::vector<Output> outputs;
  if (asked.has("json")) outputs.push_back({asked.text("json"), {}});
  if (asked.has("report")) outputs.push_back({asked.text("report"), {}, " (open it in a browser)"});
  if (asked.has("plans"))
    outputs.push_back({asked.text("plans"), {}, " (for simulate and execute)"});
  std::vector<std::string> inputs = {space.file()};
  if (asked.has("store")) inputs.push_back(asked.text("store"));
  check_outputs(outputs, inputs);
  return outputs;
}

int run_search(const std::vector<std::string>& line) {
  const Arguments asked(search_options(), line);
  if (asked.helped()) return done;
  const bool ranks = kernels::launch().has_value();
  std::optional<search::Space> space;
  std::vector<Output> outputs;
  search::Crew crew;
  std::optional<search::Port> port;
  const auto read = [&] {
    if (asked.whole("best") < 1) throw UsageError("--best: expected at least 1");
    objective(asked);
    jobs(asked);
    space.emplace(search::Space::read(asked.required("scenario"), settings_of(asked)));
    return ranks ? search::context_of(*space) : "";
  };
  const auto open = [&] {
    outputs = outputs_of(asked, *space);
    return ranks ? port.emplace(crew).address() : "";
  };
  const std::optional<Met> met = meet(read, open);
  if (!met) return done;
  if (met->rank == 0) return lead(*space, crew, asked, outputs);
  const bool reached = search::help(met->word, jobs(asked), [&](const std::string& question) {
    return search::answer(*space, question);
  });
  if (!reached) fmt::print(stderr, "stratagem: rank {}: rank 0 was not reached\n", met->rank);
  return done;
}

}  // namespace

Command search() {
  return {"search", "find the best plans of a space, with proof", &search_options, &run_search};
}

}  // namespace stratagem::commands
