// Writes worlds as files, and reads what came of them.
#include "tests/scenarios/keys/world.hpp"

#include <filesystem>
#include <fstream>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"
#include "report/report.hpp"
#include "report/workflows.hpp"
#include "study/results.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/workflow/outcome.hpp"
#include "topology/presets.hpp"

namespace stratagem::keys {
namespace {

ordered_json of_file(const std::string& file) {
  std::ifstream stream(file);
  REQUIRE(stream.good());
  return ordered_json::parse(stream);
}

}  // namespace

ordered_json loaded(ordered_json world) {
  for (const char* key : {"profile", "stack", "node", "plan"}) {
    if (world.contains(key) && world.at(key).is_string())
      world[key] = of_file("scenarios/" + std::string(key) + "s/" +
                           world.at(key).get<std::string>() + ".json");
  }
  if (!world.contains("files")) return world;
  for (auto& [name, document] : world.at("files").items()) {
    if (document.is_string())
      document = of_file("scenarios/" + document.get<std::string>() + ".json");
  }
  return world;
}

std::string Oracle::write(const ordered_json& world) const {
  ordered_json run = world.at("run");
  for (const char* key : {"profile", "stack", "node", "plan"}) {
    if (!world.contains(key)) continue;
    const std::string name = std::string(key) + ".json";
    folder_.write(name, world.at(key).dump());
    ordered_json& names_it = key == std::string("node") ? run["cluster"] : run;
    if (!names_it.contains(key)) names_it[key] = name;
  }
  if (world.contains("files")) {
    for (const auto& [name, document] : world.at("files").items())
      folder_.write(name, document.dump());
  }
  ordered_json scenario = world.at("scenario");
  ordered_json others = scenario.value("runs", ordered_json::array());
  scenario["runs"] = ordered_json::array({run});
  for (const ordered_json& other : others) scenario["runs"].push_back(other);
  folder_.write("scenario.json", scenario.dump());
  return (folder_.path() / "scenario.json").string();
}

std::string Oracle::read(const ordered_json& world) {
  try {
    const study::Scenario scenario = study::read_scenario(write(world));
    static_cast<void>(study::read_workflows(scenario));
    if (scenario.runs.front().refused) return scenario.runs.front().refused->what();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> Oracle::operators(const ordered_json& world) {
  const study::Scenario scenario = study::read_scenario(write(world));
  std::vector<std::string> names;
  for (const model::Operator& op : scenario.runs.front().graph->operators) {
    if (op.pass == model::Pass::optimizer || op.kind == model::OpKind::identity) continue;
    names.push_back(model::stack_name(op));
  }
  return names;
}

Answers Oracle::ask(const ordered_json& world) {
  try {
    const study::Scenario scenario = study::read_scenario(write(world));
    std::vector<study::Outcome> outcomes;
    for (const study::Run& run : scenario.runs)
      outcomes.push_back(study::simulate(run, {}).outcome);
    const std::vector<study::Result> results = study::compare(scenario, std::move(outcomes));
    std::vector<study::WorkflowOutcome> workflows;
    for (const study::Workflow& workflow : study::read_workflows(scenario))
      workflows.push_back(study::simulate_workflow(workflow, {}));
    ordered_json run =
        ordered_json::parse(report::to_json(scenario, results).text()).at("runs").at(0);
    run["workflows"] = ordered_json::parse(report::to_json(workflows).text());
    const std::vector<std::string> failures = study::failures(results);
    return {.run = std::move(run),
            .failures = failures.size(),
            .complaints = ordered_json(failures).dump(),
            .table = report::table(scenario, results, report::Sources::in_full) +
                     report::workflow_text(workflows),
            .topology = topology::describe(scenario.runs.front().cluster),
            .refused = ""};
  } catch (const InputError& error) {
    return {.run = {},
            .failures = 0,
            .complaints = "",
            .table = "",
            .topology = "",
            .refused = error.what()};
  }
}

ordered_json answer(const Answers& answers, const std::string& name) {
  if (name == "table") return answers.table;
  if (name == "complaints") return answers.complaints;
  if (name == "report") return answers.run.dump();
  if (name == "topology") return answers.topology;
  if (name == "failures") return answers.failures;
  const ordered_json::json_pointer pointer("/" + name);
  return answers.run.contains(pointer) ? answers.run.at(pointer) : ordered_json(0);
}

}  // namespace stratagem::keys
