// The command line: reads arguments, calls, reports, and maps errors to exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/input_error.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/nccl_fit.hpp"
#include "calibrate/nccl_log.hpp"
#include "calibrate/nccl_others.hpp"
#include "calibrate/published.hpp"
#include "model/zoo/all.hpp"
#include "report/explain.hpp"
#include "report/groups.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "report/trace.hpp"
#include "report/validation.hpp"
#include "search/fit_stack.hpp"
#include "search/plan_of.hpp"
#include "search/results.hpp"
#include "search/scenario.hpp"
#include "search/validation.hpp"
#include "strategies/all.hpp"
#include "strategies/language/plan_text.hpp"
#include "strategies/lower.hpp"
#include "topology/fabric_choice.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/node_file.hpp"
#include "topology/presets.hpp"

namespace {

using namespace stratagem;

enum ExitCode { done = 0, bad_input = 1, usage = 2, check_failed = 3 };

/// A command line that cannot be understood.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file still to be written: everything is computed before anything is written.
struct Output {
  std::string file;
  std::string text;
  std::string note;  ///< printed behind the file's name
};

/// Refuses outputs that cannot be written, or would overwrite each other or the input, before any is
/// written. Makes the folders that they need.
void check_outputs(const std::vector<Output>& outputs, const std::string& input) {
  std::vector<std::filesystem::path> taken = {std::filesystem::weakly_canonical(input)};
  for (const Output& output : outputs) {
    const std::filesystem::path path = std::filesystem::weakly_canonical(output.file);
    if (std::find(taken.begin(), taken.end(), path) != taken.end())
      throw InputError(output.file, "", "a file of its own for every output", "one in use");
    taken.push_back(path);
    std::error_code ignored;  // what is still missing cannot be opened
    std::filesystem::create_directories(path.parent_path(), ignored);
    const bool existed = std::filesystem::exists(path);
    const bool can_open = std::ofstream(output.file, std::ios::binary | std::ios::app).is_open();
    if (!can_open) throw InputError(output.file, "", "a file that can be written", "");
    if (!existed) std::filesystem::remove(path);
  }
}

void write(const Output& output) {
  std::ofstream stream(output.file, std::ios::binary);
  stream << output.text;
  stream.close();
  if (!stream) throw InputError(output.file, "", "a file that can be written", "");
  fmt::print("wrote {}{}\n", output.file, output.note);
}

cxxopts::ParseResult parse(cxxopts::Options& options, const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers = {"stratagem"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  std::optional<cxxopts::ParseResult> parsed;
  try {
    parsed = options.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
  if (!parsed->unmatched().empty())
    throw UsageError("what is \"" + parsed->unmatched().front() + "\"?");
  return *parsed;
}

std::string required(const cxxopts::ParseResult& parsed, const std::string& name) {
  if (parsed.count(name) == 0) throw UsageError("missing " + name);
  return parsed[name].as<std::string>();
}

// ---- simulate

/// The run that `--trace` and `--program` write: `--run NAME`, or the first.
const search::Run& chosen_run(const search::Scenario& scenario, const std::string& name) {
  if (name.empty()) return scenario.runs.front();
  for (const search::Run& run : scenario.runs) {
    if (run.name == name) return run;
  }
  throw UsageError("no run named \"" + name + "\"");
}

cxxopts::Options simulate_options() {
  cxxopts::Options options("stratagem simulate",
                           "Predict time and memory of every run of a scenario.");
  auto add = options.add_options();
  add("scenario", "scenario file", cxxopts::value<std::string>());
  add("json", "write the results as JSON", cxxopts::value<std::string>());
  add("trace", "write a Perfetto trace of one run", cxxopts::value<std::string>());
  add("program", "write the lowered program of one run as text", cxxopts::value<std::string>());
  add("run", "the run to trace or write (default: the first)",
      cxxopts::value<std::string>()->default_value(""));
  add("accuracy", "print what was measured beside what is predicted, as Markdown");
  add("no-remedies", "do not look for changes with which runs fit that do not");
  add("memory", "print what fills every device's memory, and when");
  add("unfolded", "simulate every device, not one per class of equal ones");
  add("h,help", "this text");
  options.parse_positional({"scenario"});
  options.positional_help("SCENARIO");
  return options;
}

/// Simulates every run; adds what was asked for about the chosen one to `outputs`.
std::vector<search::Result> simulate_all(const search::Scenario& scenario,
                                         const cxxopts::ParseResult& asked,
                                         std::vector<Output>& outputs) {
  const search::Run& chosen = chosen_run(scenario, asked["run"].as<std::string>());
  std::vector<search::Outcome> outcomes;
  for (const search::Run& run : scenario.runs) {
    search::Simulated simulated = search::simulate(run, {.folded = asked.count("unfolded") == 0});
    if (&run == &chosen && asked.count("trace") > 0) {
      outputs.push_back({asked["trace"].as<std::string>(),
                         report::chrome_trace(simulated.program, simulated.timeline, run.name,
                                              simulated.outcome.hosts),
                         " (open it in https://ui.perfetto.dev)"});
    }
    if (&run == &chosen && asked.count("program") > 0) {
      outputs.push_back(
          {asked["program"].as<std::string>(), strategies::to_text(simulated.program)});
    }
    outcomes.push_back(std::move(simulated.outcome));
  }
  return search::compare(scenario, std::move(outcomes));
}

void find_remedies(std::vector<search::Result>& results) {
  for (search::Result& result : results) {
    if (result.outcome.status == search::Outcome::Status::out_of_memory)
      result.remedies = search::remedies(*result.run, 3);
  }
}

int simulate(const std::vector<std::string>& arguments) {
  cxxopts::Options options = simulate_options();
  const cxxopts::ParseResult asked = parse(options, arguments);
  if (asked.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  const search::Scenario scenario = search::read_scenario(required(asked, "scenario"));
  std::vector<Output> outputs;
  std::vector<search::Result> results = simulate_all(scenario, asked, outputs);
  if (asked.count("no-remedies") == 0 && asked.count("accuracy") == 0) find_remedies(results);
  if (asked.count("json") > 0) {
    const std::string text = report::to_json(scenario, results).text(2) + "\n";
    outputs.insert(outputs.begin(), {asked["json"].as<std::string>(), text});
  }
  check_outputs(outputs, scenario.file);
  fmt::print("{}", asked.count("accuracy") > 0 ? report::accuracy(results)
                   : asked.count("memory") > 0 ? report::memory_table(results)
                                               : report::table(scenario, results));
  if (!outputs.empty()) fmt::print("\n");
  for (const Output& output : outputs) write(output);
  const std::vector<std::string> failures = search::failures(results);
  for (const std::string& line : failures) fmt::print(stderr, "{}\n", line);
  return failures.empty() ? done : check_failed;
}

// ---- explain

int explain(const std::vector<std::string>& arguments) {
  cxxopts::Options options(
      "stratagem explain",
      "Print what a run's strategy does, as op-trans, op-assign and op-order.");
  auto add = options.add_options();
  add("scenario", "scenario file", cxxopts::value<std::string>());
  add("run", "the run to explain (default: the first)",
      cxxopts::value<std::string>()->default_value(""));
  add("as-plan", "write a plan file, for \"plan\" in place of \"strategy\"",
      cxxopts::value<std::string>());
  add("h,help", "this text");
  options.parse_positional({"scenario"});
  options.positional_help("SCENARIO");
  const cxxopts::ParseResult asked = parse(options, arguments);
  if (asked.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  const search::Scenario scenario = search::read_scenario(required(asked, "scenario"));
  const search::Run& run = chosen_run(scenario, asked["run"].as<std::string>());
  const strategies::Plan plan = search::plan_of(run);
  std::vector<Output> outputs;
  if (asked.count("as-plan") > 0)
    outputs.push_back({asked["as-plan"].as<std::string>(), strategies::file_text(plan)});
  check_outputs(outputs, scenario.file);
  fmt::print("{}", report::explain(run, plan));
  if (!outputs.empty()) fmt::print("\n");
  for (const Output& output : outputs) write(output);
  return done;
}

// ---- validate

constexpr const char* limits_file = "validate.json";

/// The scenarios named, and those of the folders named, in the order of their names.
std::vector<std::string> scenario_files(const std::vector<std::string>& named) {
  std::vector<std::string> files;
  for (const std::string& name : named) {
    if (!std::filesystem::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      if (entry.path().extension() == ".json" && entry.path().filename() != limits_file)
        inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw InputError(name, "", "a folder of scenarios", "none");
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

/// Those of the first folder named that has some, or those of the command line.
search::Limits limits_for(const cxxopts::ParseResult& asked) {
  search::Limits limits;
  for (const std::string& name : asked["scenarios"].as<std::vector<std::string>>()) {
    const std::filesystem::path file = std::filesystem::path(name) / limits_file;
    if (!std::filesystem::exists(file)) continue;
    limits = search::read_limits(file.string());
    break;
  }
  if (asked.count("median") > 0) {
    limits.medians.clear();
    for (const std::string& figure : search::figure_names)
      limits.medians.push_back({figure, asked["median"].as<double>() / 100});
  }
  if (asked.count("wrong") > 0) limits.wrong_verdicts = asked["wrong"].as<int>();
  return limits;
}

cxxopts::Options validate_options() {
  cxxopts::Options options(
      "stratagem validate",
      "Compare what is predicted with what was measured, over many scenarios.");
  auto add = options.add_options();
  add("scenarios", "scenario files, or folders of them; a folder's validate.json has its limits",
      cxxopts::value<std::vector<std::string>>());
  add("figure", "this figure only, such as iteration_time, or fits",
      cxxopts::value<std::string>()->default_value(""));
  add("group", "groups only whose names contain this",
      cxxopts::value<std::string>()->default_value(""));
  add("summary", "print no single figures");
  add("median", "highest median of the absolute errors in any group, in %",
      cxxopts::value<double>());
  add("wrong", "highest number of wrong verdicts on what fits", cxxopts::value<int>());
  add("json", "write all of it as JSON", cxxopts::value<std::string>());
  add("h,help", "this text");
  options.parse_positional({"scenarios"});
  options.positional_help("SCENARIOS...");
  return options;
}

search::Selection selection_of(const cxxopts::ParseResult& asked) {
  search::Selection selection{.figure = asked["figure"].as<std::string>(),
                              .group = asked["group"].as<std::string>()};
  const bool known =
      selection.figure.empty() ||
      std::ranges::find(search::figure_names, selection.figure) != search::figure_names.end();
  if (known) return selection;
  throw UsageError(fmt::format("no figure \"{}\"; figures are {}", selection.figure,
                               fmt::join(search::figure_names, ", ")));
}

int validate(const std::vector<std::string>& arguments) {
  cxxopts::Options options = validate_options();
  const cxxopts::ParseResult asked = parse(options, arguments);
  if (asked.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  if (asked.count("scenarios") == 0) throw UsageError("missing scenarios");
  const search::Selection selection = selection_of(asked);
  const search::Limits limits = limits_for(asked);
  std::vector<search::Scenario> scenarios;
  for (const std::string& file : scenario_files(asked["scenarios"].as<std::vector<std::string>>()))
    scenarios.push_back(search::read_scenario(file));
  const std::string first = scenarios.front().file;
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<search::Played> played = search::play(std::move(scenarios), selection, threads);
  const search::Validation validation = search::validate(played, selection);
  if (validation.groups().empty()) throw UsageError("nothing of this was measured");
  std::vector<Output> outputs;
  if (asked.count("json") > 0) {
    outputs.push_back(
        {asked["json"].as<std::string>(), report::to_json(validation).text(2) + "\n", ""});
  }
  check_outputs(outputs, first);
  fmt::print("{}", asked.count("summary") > 0 ? report::validation_summary(validation)
                                              : report::validation_table(validation));
  if (!outputs.empty()) fmt::print("\n");
  for (const Output& output : outputs) write(output);
  const std::vector<std::string> broken = search::broken(validation, limits);
  for (const std::string& line : broken) fmt::print(stderr, "{}\n", line);
  return broken.empty() ? done : check_failed;
}

// ---- topology

/// A preset by name, or the user's own server by the path of its file.
topology::NodeFile server_named(const std::string& name) {
  if (name.ends_with(".json")) return topology::read_node(name);
  std::vector<std::string> known;
  for (const topology::Preset& preset : topology::presets()) {
    if (preset.name != name) {
      known.push_back(preset.name);
      continue;
    }
    const topology::Cluster one = preset.build(1);
    return {one.design(), one.fabric().design().speed, "preset " + name};
  }
  throw UsageError(fmt::format("no preset \"{}\", nor a path that ends in .json; presets are {}",
                               name, fmt::join(known, ", ")));
}

/// `topology show --groups`: which links the groups of a run use.
int show_groups(const cxxopts::ParseResult& asked) {
  const std::string file = required(asked, "name");
  const search::Scenario scenario = search::read_scenario(file);
  const search::Run& run = chosen_run(scenario, asked["run"].as<std::string>());
  const strategies::Plan plan = search::plan_of(run);
  const strategies::Program program = strategies::lower(plan, run.stack, run.training);
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  const std::vector<report::GroupLinks> groups = report::group_links(program, collectives);
  std::vector<Output> outputs;
  if (asked.count("svg") > 0)
    outputs.push_back({asked["svg"].as<std::string>(), report::groups_svg(groups, run.cluster)});
  if (asked.count("dot") > 0)
    outputs.push_back({asked["dot"].as<std::string>(), report::groups_dot(groups, run.cluster)});
  check_outputs(outputs, file);
  fmt::print("{}", report::groups_table(groups, run.cluster));
  if (!outputs.empty()) fmt::print("\n");
  for (const Output& output : outputs) write(output);
  return done;
}

/// A design does not know the file that it comes from.
topology::Cluster cluster_of(const topology::NodeFile& server, int nodes,
                             const topology::FabricDesign& fabric, const std::string& file) {
  try {
    return {server.design, nodes, fabric};
  } catch (const InputError& error) {
    if (!error.file.empty()) throw;
    throw InputError(file, error.path, error.expected, error.found);
  }
}

/// `topology show`: a cluster as a table.
int show_topology(const cxxopts::ParseResult& asked) {
  if (asked.count("groups") > 0) return show_groups(asked);
  const topology::NodeFile server = server_named(required(asked, "name"));
  const int nodes = asked["nodes"].as<int>();
  if (nodes < 1) throw UsageError("--nodes must be at least 1");
  const auto nics = static_cast<int>(std::ranges::count(
      server.design.vertices, topology::VertexKind::nic, &topology::Vertex::kind));
  topology::FabricDesign fabric{.speed = server.port.value_or(topology::network_speeds().front())};
  if (asked.count("fabric") > 0) {
    const auto reader = JsonReader::from_text(asked["fabric"].as<std::string>(), "--fabric");
    fabric = topology::read_fabric(reader, server.port, nics);
    reader.finish();
  }
  fmt::print("{}", topology::describe(cluster_of(server, nodes, fabric, required(asked, "name"))));
  return done;
}

/// `topology export`: a server as a node file, to change and to name in a scenario.
int export_topology(const cxxopts::ParseResult& asked) {
  const topology::NodeFile server = server_named(required(asked, "name"));
  const std::vector<Output> outputs = {
      {required(asked, "output"), topology::node_text(server), ""}};
  check_outputs(outputs, required(asked, "name"));
  write(outputs.front());
  return done;
}

/// `topology import`: a server as a node file, from what NVIDIA's tools print about it.
int import_topology(const cxxopts::ParseResult& asked) {
  const std::string file = required(asked, "name");
  const std::string output = required(asked, "output");
  const auto said = [&](const std::string& key) {
    return asked.count(key) > 0 ? asked[key].as<std::string>() : "";
  };
  const std::string port = said("port");
  std::vector<std::string> known;
  for (const topology::NetworkSpeed& speed : topology::network_speeds())
    known.push_back(speed.name);
  if (!port.empty() && std::ranges::find(known, port) == known.end())
    throw UsageError(fmt::format("--port \"{}\" is none of {}", port, fmt::join(known, ", ")));
  const topology::NodeFile node = topology::importers::import_node(
      file, {.gpu = said("gpu"), .port = port, .name = said("as")});
  const std::vector<Output> outputs = {{output, topology::node_text(node), ""}};
  check_outputs(outputs, file);
  fmt::print("{}", topology::describe(topology::Cluster(
                       node.design, 1,
                       {.speed = node.port.value_or(topology::network_speeds().front())})));
  fmt::print("\nsource: {}\n\n", node.source);
  write(outputs.front());
  return done;
}

cxxopts::Options topology_options() {
  cxxopts::Options options(
      "stratagem topology",
      "Show and write servers; SERVER is a preset or a node file:\n"
      "  topology show SERVER --nodes N --fabric JSON\n"
      "  topology show SCENARIO --groups --run NAME --svg FILE --dot FILE\n"
      "    which links the groups of a run's plan use\n"
      "  topology export SERVER -o NODE.json\n"
      "  topology import FILE -o NODE.json --gpu NAME --port SPEED\n"
      "    from NCCL's NCCL_TOPO_DUMP_FILE, or what nvidia-smi topo -m prints");
  auto add = options.add_options();
  add("verb", "show, export or import", cxxopts::value<std::string>());
  add("name", "a preset or a node file; import: the file to read", cxxopts::value<std::string>());
  add("nodes", "show: number of servers", cxxopts::value<int>()->default_value("1"));
  add("fabric", "show: as \"fabric\" of a scenario's cluster", cxxopts::value<std::string>());
  add("groups", "show: the groups of a scenario's run on the cluster's links");
  add("run", "with --groups: the run (default: the first)",
      cxxopts::value<std::string>()->default_value(""));
  add("svg", "with --groups: write a picture", cxxopts::value<std::string>());
  add("dot", "with --groups: write a graph for Graphviz", cxxopts::value<std::string>());
  add("gpu", "import: the GPU's profile, such as a100-sxm4-80gb", cxxopts::value<std::string>());
  add("port", "import: the adapters' speed, such as NDR", cxxopts::value<std::string>());
  add("as", "import: the server's name (default: the file's)", cxxopts::value<std::string>());
  add("o,output", "the node file to write", cxxopts::value<std::string>());
  add("h,help", "this text");
  options.parse_positional({"verb", "name"});
  return options;
}

int topology(const std::vector<std::string>& arguments) {
  cxxopts::Options options = topology_options();
  const cxxopts::ParseResult asked = parse(options, arguments);
  if (asked.count("help") > 0) {
    fmt::print("{}\nPresets:\n", options.help());
    for (const topology::Preset& preset : topology::presets())
      fmt::print("  {:<13} {}\n", preset.name, preset.summary);
    return done;
  }
  const std::string verb = required(asked, "verb");
  if (verb == "show") return show_topology(asked);
  if (verb == "export") return export_topology(asked);
  if (verb == "import") return import_topology(asked);
  throw UsageError("topology knows three verbs, show, export and import; not \"" + verb + "\"");
}

// ---- calibrate

/// `calibrate fit`: a profile from measurements.
int fit_profile(const cxxopts::ParseResult& asked) {
  const calibrate::Datasheet sheet = calibrate::read_datasheet(required(asked, "datasheet"));
  std::vector<calibrate::Measurements> measurements;
  if (asked.count("files") > 0) {
    for (const std::string& file : asked["files"].as<std::vector<std::string>>())
      measurements.push_back(calibrate::read_measurements(file));
  }
  const calibrate::Fit fit = measurements.empty() ? calibrate::fit_profile(sheet)
                                                  : calibrate::fit_profile(measurements, sheet);
  fmt::print("{}", calibrate::describe(fit));
  if (asked.count("output") > 0)
    calibrate::write_profile(fit.profile, asked["output"].as<std::string>());
  return done;
}

/// `calibrate nccl`: how well NCCL's model, corrected, says what was measured.
int judge_nccl(const cxxopts::ParseResult& asked) {
  if (asked.count("files") == 0) throw UsageError("missing measurements");
  for (const std::string& file : asked["files"].as<std::vector<std::string>>()) {
    const calibrate::Measurements measurements = calibrate::read_measurements(file);
    for (const calibrate::NcclTable& table : measurements.nccl_all_reduces)
      fmt::print("{}", calibrate::describe_nccl(table));
    for (const calibrate::NcclTable& table : measurements.nccl_others)
      fmt::print("{}", calibrate::describe_others(table));
  }
  return done;
}

/// `calibrate stack`: a stack's scalar from one published run on one GPU.
int fit_stack(const cxxopts::ParseResult& asked) {
  if (asked.count("files") == 0) throw UsageError("missing scenario");
  const auto files = asked["files"].as<std::vector<std::string>>();
  const search::Scenario scenario = search::read_scenario(files.front());
  const search::Run& run = chosen_run(scenario, asked["run"].as<std::string>());
  const cost::Constant<double> slowdown = search::fit_slowdown(run);
  fmt::print("{}: slowdown {} ({})\n", run.stack.name, slowdown.value, slowdown.source);
  return done;
}

/// `calibrate import --rules`: scenarios from records of published runs; without an output only the
/// list of what became of them.
int import_published(const cxxopts::ParseResult& asked) {
  if (asked.count("files") == 0) throw UsageError("missing records");
  const std::string records = asked["files"].as<std::vector<std::string>>().front();
  const calibrate::ImportedRecords imported =
      calibrate::import_records(records, required(asked, "rules"));
  std::vector<Output> outputs;
  if (asked.count("output") > 0) {
    const std::filesystem::path folder = asked["output"].as<std::string>();
    for (const calibrate::ImportedScenario& scenario : imported.scenarios)
      outputs.push_back({(folder / scenario.file).string(), scenario.text, ""});
  }
  check_outputs(outputs, records);
  fmt::print("{}", calibrate::describe(imported));
  if (!outputs.empty()) fmt::print("\n");
  for (const Output& output : outputs) write(output);
  return done;
}

/// `calibrate import`: measurements from what nccl-tests printed.
int import_measurements(const cxxopts::ParseResult& asked) {
  if (asked.count("rules") > 0) return import_published(asked);
  if (asked.count("files") == 0) throw UsageError("missing logs of nccl-tests");
  const std::filesystem::path file = required(asked, "output");
  const std::string cluster = required(asked, "cluster");
  if (cluster.ends_with(".json")) throw UsageError("--cluster is the name of a preset");
  static_cast<void>(server_named(cluster));
  const calibrate::Datasheet sheet = calibrate::read_datasheet(required(asked, "datasheet"));
  const std::string program = asked.count("program") > 0 ? asked["program"].as<std::string>() : "";
  std::vector<calibrate::NcclLog> logs;
  for (const std::string& log : asked["files"].as<std::vector<std::string>>())
    logs.push_back(calibrate::read_nccl_log(log, program));
  const std::string csv = file.stem().string() + ".csv";
  const std::string version = asked.count("nccl") > 0 ? asked["nccl"].as<std::string>() : "";
  const calibrate::ImportedLogs imported =
      calibrate::import_logs(logs, sheet, cluster, version, csv);
  const std::vector<Output> outputs = {{file.string(), imported.json, ""},
                                       {(file.parent_path() / csv).string(), imported.csv, ""}};
  check_outputs(outputs, logs.front().file);
  for (const Output& output : outputs) write(output);
  return done;
}

int calibrate(const std::vector<std::string>& arguments) {
  cxxopts::Options options(
      "stratagem calibrate",
      "Fit what predictions rest on:\n"
      "  calibrate fit [MEASUREMENTS...] --datasheet FILE -o PROFILE\n"
      "  calibrate import LOGS... --datasheet FILE --cluster PRESET -o MEASUREMENTS\n"
      "    from the output of a program of nccl-tests, text or JSON\n"
      "  calibrate import RECORDS --rules RULES -o FOLDER\n"
      "    scenarios from records of published runs\n"
      "  calibrate nccl MEASUREMENTS...\n"
      "  calibrate stack SCENARIO --run NAME");
  auto add = options.add_options();
  add("verb", "fit, import, nccl or stack", cxxopts::value<std::string>());
  add("files", "measurements (those that the datasheet names if none is given), or a scenario",
      cxxopts::value<std::vector<std::string>>());
  add("datasheet", "fit, import: what is not measured", cxxopts::value<std::string>());
  add("cluster", "import: preset of the server", cxxopts::value<std::string>());
  add("rules", "import: how records become scenarios", cxxopts::value<std::string>());
  add("program", "import: such as all_gather_perf, if the logs do not say it",
      cxxopts::value<std::string>());
  add("nccl", "import: version of NCCL, if the logs do not say it", cxxopts::value<std::string>());
  add("o,output", "fit: the profile to write; import: the measurements, or a folder of scenarios",
      cxxopts::value<std::string>());
  add("run", "stack: the run to fit to", cxxopts::value<std::string>()->default_value(""));
  add("h,help", "this text");
  options.parse_positional({"verb", "files"});
  const cxxopts::ParseResult asked = parse(options, arguments);
  if (asked.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  const std::string verb = required(asked, "verb");
  if (verb == "fit") return fit_profile(asked);
  if (verb == "import") return import_measurements(asked);
  if (verb == "nccl") return judge_nccl(asked);
  if (verb == "stack") return fit_stack(asked);
  throw UsageError("calibrate knows four verbs, fit, import, nccl and stack; not \"" + verb + "\"");
}

// ---- help

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>&);
};

constexpr Command commands[] = {
    {"simulate", "predict time and memory of every run of a scenario", &simulate},
    {"validate", "compare predictions with measurements over many scenarios", &validate},
    {"explain", "print the strategy of a run as primitives, or write it as a plan file", &explain},
    {"topology", "show a cluster, or write a server as a file", &topology},
    {"calibrate", "fit a hardware profile to measurements", &calibrate},
};

void print_help() {
  fmt::print("stratagem: what will a parallel training plan do on a GPU cluster?\n\nCommands:\n");
  for (const Command& command : commands)
    fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nStrategies (keys of a run's \"strategy\"):\n");
  for (const strategies::Strategy& entry : strategies::all())
    fmt::print("  {:<10} {}\n", entry.key, entry.summary);
  fmt::print("\nSchedules (\"schedule\"):\n");
  for (const strategies::Schedule& entry : strategies::schedules())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nPrecisions (\"precision\" of \"training\"):\n");
  for (const cost::Precision& entry : cost::precisions())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nOptimizers (\"optimizer\"):\n");
  for (const cost::Optimizer& entry : cost::optimizers())
    fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nModels (\"family\"):\n");
  for (const model::Family& family : model::families())
    fmt::print("  {:<10} {}\n", family.name, family.summary);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw UsageError("which command? see stratagem --help");
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_help();
    return done;
  }
  for (const Command& command : commands) {
    if (arguments[0] == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  }
  throw UsageError("no command \"" + arguments[0] + "\"; see stratagem --help");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    fmt::print(stderr, "stratagem: {}\n", error.what());
    return usage;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stratagem: internal error: {}\n", error.what());
    return bad_input;
  }
}
