// `stratagem calibrate`: measure, fit, check, report, import, nccl and stack.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/quantity_text.hpp"
#include "base/write_file.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/nccl.hpp"
#include "calibrate/fit/nccl_others.hpp"
#include "calibrate/fit/processor.hpp"
#include "calibrate/fit/report.hpp"
#include "calibrate/fit/table.hpp"
#include "calibrate/fresh_check.hpp"
#include "calibrate/import/nccl_log.hpp"
#include "calibrate/import/published.hpp"
#include "calibrate/import/table.hpp"
#include "calibrate/measure/measure.hpp"
#include "calibrate/measure/measure_cuda.hpp"
#include "calibrate/measure/ranks.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/chosen_server.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "commands/ranks/on_ranks.hpp"
#include "kernels/device.hpp"
#include "kernels/ranks/world.hpp"
#include "study/fit_stack.hpp"
#include "study/kernels_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {
namespace {

/// What is fitted: measurements, or those that the datasheet names.
calibrate::Fit asked_fit(const Arguments& asked, const std::string& output) {
  std::vector<calibrate::Measurements> measurements;
  if (asked.has("files")) {
    for (const std::string& file : asked.texts("files"))
      measurements.push_back(calibrate::read_measurements(file));
  }
  if (!asked.has("datasheet") && measurements.empty()) throw UsageError("missing datasheet");
  std::vector<std::string> inputs;
  for (const calibrate::Measurements& file : measurements) inputs.push_back(file.file);
  if (asked.has("datasheet")) inputs.push_back(asked.text("datasheet"));
  if (!output.empty()) check_outputs({{output, ""}}, inputs);
  const std::string named =
      output.empty() && !measurements.empty() ? measurements.front().file : output;
  if (!asked.has("datasheet"))
    return calibrate::fit_processor(measurements, std::filesystem::path(named).stem().string());
  calibrate::Datasheet sheet = calibrate::read_datasheet(asked.text("datasheet"));
  if (!output.empty()) sheet.name = std::filesystem::path(output).stem().string();
  return calibrate::fit_completed(std::move(measurements), sheet);
}

/// `calibrate fit`: a profile from measurements.
int fit_profile(const Arguments& asked) {
  const std::string output = asked.text_or_nothing("output");
  const calibrate::Fit fit = asked_fit(asked, output);
  fmt::print(for_people({{output, ""}}), "{}", calibrate::describe(fit));
  if (!output.empty()) calibrate::write_profile(fit.profile, output);
  return done;
}

/// Files as they are named; of a folder its JSON files, by name.
std::vector<std::string> measurement_files(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    if (!std::filesystem::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
    std::sort(files.begin() + first, files.end());
  }
  return files;
}

/// `calibrate report`: measured against fitted; of profiles, the tables of
/// docs/records/calibration.md.
int report(const Arguments& asked) {
  if (asked.has("markdown")) {
    if (!asked.has("files")) throw UsageError("missing profiles");
    if (asked.has("output")) throw UsageError("--markdown prints; --output is for a page");
    std::vector<cost::Profile> profiles;
    for (const std::string& file : measurement_files(asked.texts("files")))
      profiles.push_back(cost::read_profile(file));
    fmt::print("{}", calibrate::fit_table(profiles));
    return done;
  }
  const std::string output = asked.text_or_nothing("output");
  const calibrate::Fit fit = asked_fit(asked, output);
  fmt::print(for_people({{output, ""}}), "{}", calibrate::text_report(fit));
  if (!output.empty()) write_below({{output, calibrate::html_report(fit), ""}});
  return done;
}

/// A line on a terminal; elsewhere, as in a job's log, a new line every 20 s.
class Teller {
 public:
  void operator()(const calibrate::Progress& progress) {
    if (line_) line_->tell("measured", progress.done, progress.all, ": " + progress.name);
    if (line_ || std::chrono::steady_clock::now() < next_) return;
    if (progress.done > 0)
      fmt::print(stderr, "{}, {} left: {}\n", steps_text("measured", progress.done, progress.all),
                 to_text(progress.left), progress.name);
    next_ = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  }
  void clear() { line_.reset(); }

 private:
  std::unique_ptr<Progress> line_ =
      ProgressLine::is_shown() ? std::make_unique<Progress>("measuring") : nullptr;
  std::chrono::steady_clock::time_point next_;
};

/// What `measure` goes on with if it is there, and what `import` writes others beside.
std::string asked_file(const Arguments& asked) {
  std::string file = asked.required("output");
  if (is_standard_output(file)) throw UsageError("--output is a file here, not standard output");
  return file;
}

/// What `measure --backend cuda` is asked for, and which other file it writes.
calibrate::CudaAssignment asked_of_gpus(const Arguments& asked, int ranks) {
  for (const char* option : {"for", "working-set"})
    if (asked.has(option))
      throw UsageError("--" + std::string(option) + " goes with --backend cpu");
  if (ranks > 1 && !asked.has("cluster"))
    throw UsageError("--backend cuda on several ranks wants --cluster, a preset of their servers");
  if (asked.text_or_nothing("cluster").ends_with(".json"))
    throw UsageError("--cluster is the name of a preset");
  if (ranks == 1 && asked.has("cluster"))
    throw UsageError("--cluster is for several ranks, whose collectives are measured (mpirun)");
  return {.file = asked_file(asked),
          .datasheet = asked.text_or_nothing("datasheet"),
          .sweep = asked.has("quick") ? calibrate::Sweep::quick : calibrate::Sweep::full,
          .only = asked.text_or_nothing("only"),
          .cluster = asked.text_or_nothing("cluster")};
}

/// `calibrate measure --backend cuda`: measurements of a GPU for each rank.
int measure_gpus(const Arguments& asked) {
  const auto on_rank = [&](kernels::World& world) -> int {
    kernels::Communicator& ranks = world.all();
    const calibrate::CudaAssignment assignment = asked_of_gpus(asked, ranks.size());
    const std::string more =
        std::filesystem::path(assignment.file).replace_extension(".more.json").string();
    calibrate::on_first(ranks, [&] {
      std::vector<std::string> inputs;
      if (!assignment.datasheet.empty()) inputs.push_back(assignment.datasheet);
      check_outputs({{assignment.file, ""}, {more, ""}}, inputs);
      if (!assignment.cluster.empty()) static_cast<void>(server_named(assignment.cluster));
      if (kernels::devices().empty())
        throw UsageError("--backend cuda needs a GPU: " + kernels::why_no_devices());
    });
    Teller teller;
    const std::size_t measured = calibrate::measure_cuda(assignment, world, std::ref(teller));
    if (ranks.rank() != 0) return done;
    teller.clear();
    fmt::print("{}, {}: {} measured\n", assignment.file, more, measured);
    return done;
  };
  return on_ranks(kernels::patience, bad_input, on_rank);
}

/// What `measure --for` asks for, without the scenarios' folders.
std::vector<calibrate::ScenarioKernels> asked_scenarios(const Arguments& asked) {
  std::vector<calibrate::ScenarioKernels> scenarios;
  if (!asked.has("for")) return scenarios;
  for (const std::string& file : asked.texts("for"))
    scenarios.push_back({.name = std::filesystem::path(file).stem().string(),
                         .kernels = study::kernels_of_scenario(file)});
  return scenarios;
}

/// What operands are dealt out of, if that is asked for.
std::optional<Bytes> asked_working_set(const Arguments& asked) {
  if (!asked.has("working-set")) return std::nullopt;
  const std::optional<Bytes> size = parse_quantity<Bytes>(asked.required("working-set"));
  if (!size || *size < 1_MB || *size > 1_GB)
    throw UsageError("--working-set is a size from 1 MB to 1 GB, such as \"16 MB\"");
  return size;
}

/// `calibrate measure`: measurements of this machine.
int measure(const Arguments& asked) {
  if (asked.text("backend") == "cuda") return measure_gpus(asked);
  const auto on_rank = [&](kernels::Communicator& ranks) -> int {
    if (asked.has("files"))
      throw UsageError("calibrate measure reads no files, but scenarios after --for; not \"" +
                       asked.texts("files").front() + "\"");
    calibrate::Assignment assignment{
        .file = asked_file(asked),
        .sweep = asked.has("quick") ? calibrate::Sweep::quick : calibrate::Sweep::full,
        .only = asked.text_or_nothing("only"),
        .working_set = asked_working_set(asked)};
    calibrate::on_first(ranks, [&] { check_outputs({{assignment.file, ""}}, {}); });
    // Rank 0 first, which says what is wrong.
    calibrate::on_first(ranks, [&] { static_cast<void>(asked_scenarios(asked)); });
    calibrate::together(ranks, [&] { assignment.scenarios = asked_scenarios(asked); });
    Teller teller;
    const std::size_t measured = calibrate::measure_cpu(assignment, ranks, std::ref(teller));
    if (ranks.rank() != 0) return done;
    teller.clear();
    fmt::print("{}: {} measured\n", assignment.file, measured);
    return done;
  };
  return on_ranks(kernels::patience, bad_input,
                  [&](kernels::World& world) { return on_rank(world.all()); });
}

/// The least number that makes sense, or a UsageError that names the option.
int at_least_one(const Arguments& asked, const std::string& option) {
  const int number = asked.whole(option);
  if (number < 1) throw UsageError("--" + option + " is a whole number of at least 1");
  return number;
}

/// `calibrate check`: shapes that a profile of this machine has not seen, measured and predicted.
int check(const Arguments& asked) {
  const auto on_rank = [&](kernels::World& world) -> int {
    kernels::Communicator& ranks = world.all();
    if (!asked.has("files") || asked.texts("files").size() != 1)
      throw UsageError("calibrate check wants one profile");
    calibrate::CheckAssignment assignment{
        .file = asked.texts("files").front(),
        .seed = static_cast<std::uint64_t>(at_least_one(asked, "seed")),
        .shapes = at_least_one(asked, "shapes"),
        .working_set = asked_working_set(asked)};
    if (asked.has("limit")) assignment.limit = asked.real("limit");
    if (!(assignment.limit > 0))
      throw UsageError("--limit is a share of more than 0, such as 0.15");
    const std::string json = asked.text_or_nothing("json");
    calibrate::on_first(ranks, [&] {
      if (!json.empty()) check_outputs({{json, ""}}, {assignment.file});
    });
    Teller teller;
    const calibrate::FreshCheck result = calibrate::check_cpu(assignment, ranks, std::ref(teller));
    const int code = calibrate::met(result) ? done : check_failed;
    if (ranks.rank() != 0) return done;
    teller.clear();
    fmt::print(for_people({{json, ""}}), "{}", calibrate::describe(result));
    if (!json.empty()) write_below({{json, calibrate::json_of(result), ""}});
    return code;
  };
  return on_ranks(kernels::patience, bad_input, on_rank);
}

/// `calibrate nccl`: how well NCCL's model, corrected, says what was measured.
int judge_nccl(const Arguments& asked) {
  if (!asked.has("files")) throw UsageError("missing measurements");
  for (const std::string& file : asked.texts("files")) {
    const calibrate::Measurements measurements = calibrate::read_measurements(file);
    for (const calibrate::NcclTable& table : measurements.nccl_all_reduces)
      fmt::print("{}", calibrate::describe_nccl(table));
    for (const calibrate::NcclTable& table : measurements.nccl_others)
      fmt::print("{}", calibrate::describe_others(table));
  }
  return done;
}

/// `calibrate stack`: a stack's scalar from one published run on one GPU.
int fit_stack(const Arguments& asked) {
  if (!asked.has("files")) throw UsageError("missing scenario");
  const auto files = asked.texts("files");
  const study::Scenario scenario = study::read_scenario(files.front());
  const study::Run& run = chosen_run(scenario, asked);
  const cost::Constant<double> slowdown = study::fit_slowdown(run);
  fmt::print("{}: slowdown {} ({})\n", run.stack.name, slowdown.value, slowdown.source);
  return done;
}

/// `calibrate import --rules`: scenarios from records of published runs; without an output only the
/// list of what became of them.
int import_published(const Arguments& asked) {
  if (!asked.has("files")) throw UsageError("missing records");
  const std::string records = asked.texts("files").front();
  const calibrate::ImportedRecords imported =
      calibrate::import_records(records, asked.required("rules"));
  std::vector<Output> outputs;
  if (asked.has("output")) {
    const std::filesystem::path folder = asked.text("output");
    for (const calibrate::ImportedScenario& scenario : imported.scenarios)
      outputs.push_back({(folder / scenario.file).string(), scenario.text, ""});
  }
  check_outputs(outputs, {records, asked.text("rules")});
  fmt::print(for_people(outputs), "{}", calibrate::describe(imported));
  write_below(outputs);
  return done;
}

/// `calibrate import` of files that end in .csv: measurements from tables.
int import_tables(const Arguments& asked) {
  const std::string file = asked.required("output");
  const calibrate::Datasheet sheet = calibrate::read_datasheet(asked.required("datasheet"));
  std::vector<std::string> inputs = asked.texts("files");
  const std::vector<Output> outputs = {{file, calibrate::import_tables(inputs, sheet), ""}};
  inputs.push_back(sheet.file);
  check_outputs(outputs, inputs);
  write(outputs);
  return done;
}

/// `calibrate import`: measurements from what nccl-tests printed, or from tables.
int import_measurements(const Arguments& asked) {
  if (asked.has("rules")) return import_published(asked);
  if (!asked.has("files")) throw UsageError("missing logs of nccl-tests, or tables");
  if (asked.texts("files").front().ends_with(".csv")) return import_tables(asked);
  const std::filesystem::path file = asked_file(asked);
  const std::string cluster = asked.required("cluster");
  if (cluster.ends_with(".json")) throw UsageError("--cluster is the name of a preset");
  static_cast<void>(server_named(cluster));
  const calibrate::Datasheet sheet = calibrate::read_datasheet(asked.required("datasheet"));
  const std::string program = asked.text_or_nothing("program");
  std::vector<calibrate::NcclLog> logs;
  for (const std::string& log : asked.texts("files"))
    logs.push_back(calibrate::read_nccl_log(log, program));
  const std::string csv = file.stem().string() + ".csv";
  const std::string version = asked.text_or_nothing("nccl");
  const calibrate::ImportedLogs imported =
      calibrate::import_logs(logs, sheet, cluster, version, csv);
  const std::vector<Output> outputs = {{file.string(), imported.json, ""},
                                       {(file.parent_path() / csv).string(), imported.csv, ""}};
  std::vector<std::string> inputs = asked.texts("files");
  inputs.push_back(sheet.file);
  check_outputs(outputs, inputs);
  write(outputs);
  return done;
}

constexpr const char* usage =
    "Measure, and fit what predictions rest on:\n"
    "  calibrate measure --backend cpu [--quick] [--for SCENARIO] [--working-set SIZE]\n"
    "      -o MEASUREMENTS\n"
    "    one core of this machine, or, under mpirun or srun, one for each rank and\n"
    "    what they take to communicate; goes on with the file if it exists\n"
    "  calibrate measure --backend cuda [--quick] [--datasheet FILE] -o FILE\n"
    "    its first GPU; shares are of the datasheet's rates, or of measured ones;\n"
    "    under mpirun or srun, with --cluster PRESET, a GPU for each rank and their\n"
    "    collectives over NCCL\n"
    "  calibrate fit [MEASUREMENTS...] --datasheet FILE -o PROFILE\n"
    "    measurements of a processor need no datasheet\n"
    "  calibrate check PROFILE [--seed N] [--shapes N] [--limit SHARE] [--json FILE]\n"
    "      [--working-set SIZE]\n"
    "    a profile of this machine's processor against shapes that it has not seen,\n"
    "    alone or under mpirun as it was measured; exit 3 above the limit\n"
    "  calibrate report [MEASUREMENTS...] --datasheet FILE [-o PAGE.html]\n"
    "    measured against fitted times\n"
    "  calibrate report --markdown PROFILES... (files, or folders of them)\n"
    "    errors of their fits, and what is asked of them\n"
    "  calibrate import LOGS... --datasheet FILE --cluster PRESET -o MEASUREMENTS\n"
    "    from the output of a program of nccl-tests, text or JSON\n"
    "  calibrate import TABLES.csv... --datasheet FILE -o MEASUREMENTS\n"
    "    times of kernels (docs/guide/measurements.md)\n"
    "  calibrate import RECORDS --rules RULES -o FOLDER\n"
    "    scenarios from records of published runs\n"
    "  calibrate nccl MEASUREMENTS...\n"
    "  calibrate stack SCENARIO --run NAME";

Options calibrate_options() {
  Options options("stratagem calibrate", usage);
  options.text("verb", "measure, fit, check, report, import, nccl or stack");
  options.among({"measure", "fit", "check", "report", "import", "nccl", "stack"});
  options.texts("files",
                "measurements (those that the datasheet names if none is given), or a scenario");
  options.text("datasheet", "fit, import: what is not measured; measure: a GPU's rates");
  options.text("cluster", "import, measure on several GPUs: preset of the server");
  options.text("rules", "import: how records become scenarios");
  options.text("program", "import: such as all_gather_perf, if the logs do not say it");
  options.text("nccl", "import: version of NCCL, if the logs do not say it");
  options.text("backend", "measure: what runs the kernels, cpu or cuda", "cpu");
  options.among({"cpu", "cuda"});
  options.flag("markdown", "report: tables of profiles");
  options.flag("quick", "measure: few shapes, half a second each");
  options.texts("for",
                "measure: scenarios whose runs' shapes are measured, too, with commas between");
  options.text("only", "measure: experiments whose names begin so, such as mpi_all_reduce");
  options.text(
      "working-set",
      "measure, check on processors: bytes that operands are dealt out of, as where a small "
      "model is trained; default: so many that none is in a cache");
  options.text(
      "o,output",
      "measure, import: the measurements to write, or a folder of scenarios; fit: the profile; "
      "report: the page");
  options.whole("seed", "check: which random shapes", 1);
  options.whole("shapes", "check: how many of every line of kernels, of products twice as many", 8);
  options.real("limit", "check: the largest median of |predicted / measured - 1| (0.15)");
  options.text("json", "check: where the errors are written to");
  options.text("run", "stack: the run to fit to", "");
  options.positional({"verb", "files"});
  return options;
}

int run_calibrate(const std::vector<std::string>& line) {
  const Arguments asked(calibrate_options(), line);
  if (asked.helped()) return done;
  const std::string verb = asked.required("verb");
  if (verb == "measure") return measure(asked);
  if (verb == "fit") return fit_profile(asked);
  if (verb == "check") return check(asked);
  if (verb == "report") return report(asked);
  if (verb == "import") return import_measurements(asked);
  return verb == "nccl" ? judge_nccl(asked) : fit_stack(asked);
}

}  // namespace

Command calibrate() {
  return {"calibrate", "measure this machine, fit a hardware profile", &calibrate_options,
          &run_calibrate};
}

}  // namespace stratagem::commands
