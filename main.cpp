// The command line: reads arguments, calls, reports, and maps errors to exit codes.
#include <fmt/format.h>

#include <cxxopts.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "calibrate/fit.hpp"
#include "model/zoo/all.hpp"
#include "report/report.hpp"
#include "report/trace.hpp"
#include "search/results.hpp"
#include "search/scenario.hpp"
#include "strategies/all.hpp"
#include "topology/presets.hpp"

namespace {

using namespace stratagem;

enum ExitCode { done = 0, bad_input = 1, usage = 2, check_failed = 3 };

/// A command line that cannot be understood.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void write_file(const std::string& file, const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw InputError(file, "", "a file that can be written", "");
  fmt::print("wrote {}\n", file);
}

cxxopts::ParseResult parse(cxxopts::Options& options, const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers = {"stratagem"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  try {
    return options.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
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

int simulate(const std::vector<std::string>& arguments) {
  cxxopts::Options options("stratagem simulate", "Predict time and memory of every run of a scenario.");
  options.add_options()("scenario", "scenario file", cxxopts::value<std::string>())(
      "json", "write the results as JSON", cxxopts::value<std::string>())(
      "trace", "write a Perfetto trace of one run", cxxopts::value<std::string>())(
      "program", "write the lowered program of one run as text", cxxopts::value<std::string>())(
      "run", "the run to trace or write (default: the first)", cxxopts::value<std::string>()->default_value(""))(
      "unfolded", "simulate every device, not one per class of equal ones")("h,help", "this text");
  options.parse_positional({"scenario"});
  options.positional_help("SCENARIO");
  const cxxopts::ParseResult parsed = parse(options, arguments);
  if (parsed.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  const search::Scenario scenario = search::read_scenario(required(parsed, "scenario"));
  const search::Run& chosen = chosen_run(scenario, parsed["run"].as<std::string>());
  std::vector<search::Outcome> outcomes;
  std::string trace;
  std::string program;
  for (const search::Run& run : scenario.runs) {
    search::Simulated simulated = search::simulate(run, {.folded = parsed.count("unfolded") == 0});
    if (&run == &chosen && parsed.count("trace") > 0) {
      trace = report::chrome_trace(simulated.program, simulated.timeline, run.name);
    }
    if (&run == &chosen && parsed.count("program") > 0) program = strategies::to_text(simulated.program);
    outcomes.push_back(std::move(simulated.outcome));
  }
  const std::vector<search::Result> results = search::compare(scenario, std::move(outcomes));
  fmt::print("{}\n", report::table(scenario, results));
  if (parsed.count("json") > 0) write_file(parsed["json"].as<std::string>(), report::to_json(scenario, results).text(2) + "\n");
  if (parsed.count("trace") > 0) write_file(parsed["trace"].as<std::string>(), trace);
  if (parsed.count("program") > 0) write_file(parsed["program"].as<std::string>(), program);
  const std::vector<std::string> failures = search::failures(results);
  for (const std::string& line : failures) fmt::print(stderr, "{}\n", line);
  return failures.empty() ? done : check_failed;
}

// ---- topology

int topology(const std::vector<std::string>& arguments) {
  cxxopts::Options options("stratagem topology", "Show a cluster: stratagem topology show PRESET --nodes N");
  options.add_options()("verb", "show", cxxopts::value<std::string>())("preset", "name", cxxopts::value<std::string>())(
      "nodes", "number of servers", cxxopts::value<int>()->default_value("1"))("h,help", "this text");
  options.parse_positional({"verb", "preset"});
  const cxxopts::ParseResult parsed = parse(options, arguments);
  if (parsed.count("help") > 0) {
    fmt::print("{}\nPresets:\n", options.help());
    for (const topology::Preset& preset : topology::presets()) fmt::print("  {:<10} {}\n", preset.name, preset.summary);
    return done;
  }
  if (required(parsed, "verb") != "show") throw UsageError("topology knows one verb: show");
  const std::string name = required(parsed, "preset");
  for (const topology::Preset& preset : topology::presets()) {
    if (preset.name != name) continue;
    fmt::print("{}", topology::describe(preset.build(parsed["nodes"].as<int>())));
    return done;
  }
  std::vector<std::string> known;
  for (const topology::Preset& preset : topology::presets()) known.push_back(preset.name);
  throw UsageError("no preset \"" + name + "\"; known are " + fmt::format("{}", fmt::join(known, ", ")));
}

// ---- calibrate

int calibrate(const std::vector<std::string>& arguments) {
  cxxopts::Options options("stratagem calibrate", "Fit a profile: stratagem calibrate fit [MEASUREMENTS...] --datasheet FILE -o PROFILE");
  options.add_options()("verb", "fit", cxxopts::value<std::string>())(
      "measurements", "files; those that the datasheet names if none is given", cxxopts::value<std::vector<std::string>>())(
      "datasheet", "what is not measured", cxxopts::value<std::string>())(
      "o,output", "profile to write", cxxopts::value<std::string>())("h,help", "this text");
  options.parse_positional({"verb", "measurements"});
  const cxxopts::ParseResult parsed = parse(options, arguments);
  if (parsed.count("help") > 0) {
    fmt::print("{}", options.help());
    return done;
  }
  if (required(parsed, "verb") != "fit") throw UsageError("calibrate knows one verb so far: fit");
  const calibrate::Datasheet sheet = calibrate::read_datasheet(required(parsed, "datasheet"));
  std::vector<calibrate::Measurements> measurements;
  if (parsed.count("measurements") > 0) {
    for (const std::string& file : parsed["measurements"].as<std::vector<std::string>>()) {
      measurements.push_back(calibrate::read_measurements(file));
    }
  }
  const calibrate::Fit fit = measurements.empty() ? calibrate::fit_profile(sheet) : calibrate::fit_profile(measurements, sheet);
  fmt::print("{}", calibrate::describe(fit));
  if (parsed.count("output") > 0) calibrate::write_profile(fit.profile, parsed["output"].as<std::string>());
  return done;
}

// ---- help

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>&);
};

constexpr Command commands[] = {
    {"simulate", "predict time and memory of every run of a scenario", &simulate},
    {"topology", "show a cluster preset", &topology},
    {"calibrate", "fit a hardware profile to measurements", &calibrate},
};

void print_help() {
  fmt::print("stratagem: how fast, how big and how well-scaling will a parallel training plan be?\n\nCommands:\n");
  for (const Command& command : commands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nStrategies (keys of a run's \"strategy\"):\n");
  for (const strategies::Strategy& entry : strategies::all()) fmt::print("  {:<10} {}\n", entry.key, entry.summary);
  fmt::print("\nSchedules (\"schedule\"):\n");
  for (const strategies::Schedule& entry : strategies::schedules()) fmt::print("  {:<10} {}\n", entry.name, entry.summary);
  fmt::print("\nModels (\"family\"):\n");
  for (const model::Family& family : model::families()) fmt::print("  {:<10} {}\n", family.name, family.summary);
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
