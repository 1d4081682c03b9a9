// Calls what the commands call.
#include "api/stratagem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/parallel.hpp"
#include "cost/optimizer.hpp"
#include "cost/precision.hpp"
#include "imports/scenario.hpp"
#include "model/zoo/presets.hpp"
#include "report/html/page.hpp"
#include "report/html/picture.hpp"
#include "report/report.hpp"
#include "report/run_columns.hpp"
#include "report/search_report.hpp"
#include "report/validation.hpp"
#include "search/sweep.hpp"
#include "search/trial.hpp"
#include "strategies/schedules/all.hpp"
#include "study/answers.hpp"
#include "study/figures.hpp"
#include "study/library.hpp"
#include "study/validation.hpp"
#include "topology/presets.hpp"

namespace stratagem::api {
namespace {

/// What `work` returns; what a user can mend is thrown as Error.
template <typename Work>
auto told(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    throw Error(error.what(), error.path, error.expected, error.found);
  }
}

int threads(int jobs) {
  if (jobs < 0) throw InputError("", "/jobs", "0 or more", std::to_string(jobs));
  return jobs == 0 ? processors() : jobs;
}

JsonReader reader_of(const Scenario& scenario) {
  return JsonReader::from_text(scenario.text, scenario.folder + "/" + scenario.name);
}

std::vector<study::KeyValues> changes_of(const std::vector<std::string>& set,
                                         const std::vector<std::string>& grid) {
  std::vector<study::KeyValues> changes;
  for (const std::string& one : set) changes.push_back(study::read_change(one, false, "set"));
  for (const std::string& one : grid) changes.push_back(study::read_change(one, true, "grid"));
  return changes;
}

/// A scenario's runs as they are asked for, and what became of them.
struct Answered {
  study::Scenario scenario;
  study::Answers answers;
  Json pictures = Json::array();
};

Answered answered(const Scenario& asked_of, const Asked& asked, bool draws) {
  Answered result{
      .scenario = study::read_scenario(reader_of(asked_of), changes_of(asked.set, asked.grid)),
      .answers = {}};
  study::Scenario& scenario = result.scenario;
  std::vector<study::Workflow> workflows;
  if (asked.run.empty() && asked.grid.empty()) workflows = study::read_workflows(scenario);
  if (!asked.run.empty() && !study::keep_alone(scenario, asked.run, !asked.grid.empty()))
    throw InputError("", "/run", "the name of a run", asked.run);
  const bool all = asked.exact || draws;
  std::vector<Json> pictures(scenario.runs.size());
  study::Wanted wanted{
      .remedies = asked.remedies,
      .gains = asked.why,
      .threads = threads(asked.jobs),
      .options = {.folded = !asked.unfolded,
                  .repeats = all ? sim::Repeats::simulated : sim::Repeats::left_out},
      .tell = asked.tell};
  if (draws) {
    wanted.show = [&](std::size_t i, const study::Simulated& simulated) {
      pictures[i] = report::picture(scenario.runs[i], simulated);
    };
  }
  result.answers = study::answer(scenario, workflows, wanted);
  for (Json& picture : pictures) result.pictures.push(std::move(picture));
  return result;
}

search::Objective objective_of(const std::string& name) {
  const std::map<std::string, search::Objective> known = {{"time", search::Objective::time},
                                                          {"cost", search::Objective::cost},
                                                          {"memory", search::Objective::memory}};
  const auto found = known.find(name);
  if (found == known.end()) throw InputError("", "/least", "time, cost or memory", name);
  return found->second;
}

Json list_of(const std::vector<imports::Note>& notes) {
  Json list = Json::array();
  for (const imports::Note& note : notes)
    list.push(Json::object().set("what", note.what).set("why", note.why));
  return list;
}

template <typename Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& one : table) names.push_back(one.name);
  return names;
}

}  // namespace

Error::Error(const std::string& line, std::string where, std::string wanted, std::string had)
    : std::runtime_error(line),
      path(std::move(where)),
      expected(std::move(wanted)),
      found(std::move(had)) {}
Error::~Error() = default;

Predicted simulate(const Scenario& scenario, const Asked& asked) {
  return told([&] {
    const Answered all = answered(scenario, asked, false);
    return Predicted{.json = report::to_json(all.scenario, all.answers).text(2) + "\n",
                     .csv = report::csv_of(all.answers.of_runs)};
  });
}

std::string simulated_page(const Scenario& scenario, const Asked& asked) {
  return told([&] {
    const Answered all = answered(scenario, asked, true);
    return report::simulated_page(all.scenario, all.answers.results, all.pictures);
  });
}

Found search(const Scenario& scenario, const Sought& sought) {
  return told([&] {
    const search::Space space =
        search::Space::read(reader_of(scenario), changes_of(sought.set, {}));
    if (sought.best < 1) throw InputError("", "/best", "1 or more", std::to_string(sought.best));
    const auto best = static_cast<std::size_t>(sought.best);
    std::optional<search::Store> store;
    if (!sought.store.empty()) store.emplace(sought.store, search::context_of(space));
    const search::SweepOptions how{.objective = objective_of(sought.least),
                                   .best = best,
                                   .threads = threads(sought.jobs),
                                   .others = {.store = store ? &*store : nullptr}};
    const auto tell = [&](const search::Progress& now) {
      const search::Steps steps = search::steps(now);
      if (sought.tell) sought.tell(steps.words, steps.done, steps.all);
    };
    const search::Swept swept = search::sweep(space, how, tell);
    std::vector<search::Explanation> explained;
    if (sought.why) explained = search::explain(space, swept, 2, how.threads);
    const Json json = report::search_json(space, swept, best, explained);
    Found found{.json = json.text(2) + "\n",
                .plans = {},
                .page = report::searched_page(space.question(), sought.least, json)};
    if (!swept.answers.empty())
      found.plans = report::best_plans(space, swept, best, scenario.folder).text(2) + "\n";
    return found;
  });
}

Validated validate(const std::vector<std::string>& scenarios, const Compared& compared) {
  return told([&] {
    const auto& names = study::figure_names;
    const std::string& figure = compared.figure;
    if (!figure.empty() && std::ranges::find(names, figure) == std::end(names))
      throw InputError("", "/figure", fmt::format("one of {}", fmt::join(names, ", ")), figure);
    const study::Selection selection{.figure = figure, .group = compared.group};
    const std::vector<study::Played> played = study::play_files(
        study::scenario_files(scenarios), selection, threads(compared.jobs), compared.tell);
    const study::Validation validation = study::validate(played, selection);
    return Validated{.json = report::to_json(validation).text(2) + "\n",
                     .page = report::validated_page(validation)};
  });
}

std::string import_files(const std::vector<std::string>& files, const std::vector<std::string>& set,
                         const std::string& format) {
  return told([&] {
    std::vector<imports::Settings> settings;
    for (const std::string& file : files) settings.push_back(imports::read_settings(file, format));
    const imports::Imported imported =
        imports::scenario_of(imports::merged(settings), changes_of(set, {}), "imported");
    Json others = Json::array();
    for (const std::string& one : imported.settings.no_matter) others.push(one);
    return Json::object()
               .set("scenario", imported.scenario)
               .set("assumed", list_of(imported.settings.assumed))
               .set("left_out", list_of(imported.settings.left_out))
               .set("no_matter", others)
               .text(2) +
           "\n";
  });
}

std::vector<std::string> names(const std::string& what) {
  return told([&]() -> std::vector<std::string> {
    if (what == "profiles" || what == "stacks") return study::names_in_library(what);
    if (what == "models") return names_of(model::presets());
    if (what == "clusters") return names_of(topology::presets());
    if (what == "schedules") return names_of(strategies::schedules());
    if (what == "precisions") return names_of(cost::precisions());
    if (what == "optimizers") return names_of(cost::optimizers());
    throw InputError(
        "", "", "profiles, stacks, models, clusters, schedules, precisions or optimizers", what);
  });
}

void use_library(const std::string& folder) {
  told([&] { study::use_library(folder); });
}

std::string version() { return STRATAGEM_VERSION; }

}  // namespace stratagem::api
