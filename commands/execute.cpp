// `stratagem execute`: a run's program on this machine's processors, held to one device and to its
// prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/ranks.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/on_ranks.hpp"
#include "commands/outputs.hpp"
#include "execute/agreement.hpp"
#include "execute/trial.hpp"
#include "kernels/thread_communicator.hpp"
#include "kernels/world.hpp"
#include "report/trace.hpp"
#include "search/plan_of.hpp"
#include "search/scenario.hpp"
#include "sim/metrics.hpp"
#include "strategies/all.hpp"
#include "strategies/lower.hpp"

namespace stratagem::commands {
namespace {

/// A run, lowered as its plan says and for one device.
struct Lowered {
  const search::Run& run;
  strategies::Plan plan, alone;
  strategies::Program program, program_alone;
};

Lowered lower(const search::Run& run) {
  try {
    const JsonReader nothing = JsonReader::from_text("{}", run.file);
    strategies::Plan plan = search::plan_of(run);
    strategies::Plan alone = strategies::compose(run.graph, run.micro_batches, {}, nothing);
    strategies::Program program = strategies::lower(plan, run.stack, run.training);
    strategies::Program program_alone = strategies::lower(alone, run.stack, run.training);
    return {run, std::move(plan), std::move(alone), std::move(program), std::move(program_alone)};
  } catch (const InputError& error) {
    throw search::located(run, error);
  }
}

/// Throws InputError for what the interpreter cannot run.
void refuse(const Lowered& lowered) {
  const search::Run& run = lowered.run;
  if (const std::string why = execute::refusal(lowered.program, lowered.plan.graph()); !why.empty())
    throw InputError(run.file, run.path, "a run whose every task can be executed", why);
  if (run.training.optimizer.name != "adam" && run.training.optimizer.name != "adamw")
    throw InputError(run.file, run.path + "/training/optimizer", "adam or adamw",
                     run.training.optimizer.name);
}

/// What came of a run; the same on all ranks.
struct Executed {
  execute::Agreement agreement;
  bool agrees = false;
  std::optional<execute::Trial> trial;  ///< none: nothing was to be timed
};

template <typename T>
Executed execute_as(const Lowered& lowered, int steps, kernels::Communicator& world) {
  const execute::Settings settings{
      .micro_batches = lowered.plan.micro_batches,
      .optimizer = {.weight_decay = lowered.run.training.optimizer.name == "adamw" ? 0.01 : 0}};
  const execute::Runnable plan{lowered.program, lowered.plan.graph()};
  const execute::Runnable alone{lowered.program_alone, lowered.alone.graph()};
  Executed result{.agreement = execute::compare<T>(plan, alone, settings, world, 3)};
  result.agrees = execute::agrees<T>(result.agreement);
  if (steps == 0) return result;
  execute::Interpreter<T> rank(lowered.program, lowered.plan.graph(), settings, world);
  rank.iterate();  // warm-up
  result.trial = execute::trial(lowered.program, rank, world, steps);
  return result;
}

/// What is predicted of a run, or why nothing it says is to be held against what is measured.
struct Predicted {
  std::optional<Seconds> iteration;
  std::string why_not;
  std::vector<Bytes> peaks;  ///< by device, of live buffers; none where those are of other types
};

std::string why_no_time(const Lowered& lowered) {
  const search::Run& run = lowered.run;
  if (run.profile.gpu != calibrate::this_machine().processor)
    return "profile " + run.profile.name + " is of " + run.profile.gpu + ", not this processor";
  if (lowered.program.devices.size() > std::thread::hardware_concurrency())
    return "ranks take turns on too few cores";
  return "";
}

Predicted predicted(const Lowered& lowered, const std::string& precision) {
  const search::Run& run = lowered.run;
  Predicted result;
  result.why_not = why_no_time(lowered);
  if (precision != run.training.precision.name)
    return {{}, "it would be of " + run.training.precision.name, {}};
  const search::Simulated simulated = search::simulate(run, {});
  if (!simulated.outcome.metrics) return {{}, simulated.outcome.reason, {}};
  if (result.why_not.empty()) result.iteration = simulated.outcome.metrics->iteration_time;
  for (const int actor : simulated.timeline.actor_of) {
    const auto of = static_cast<std::size_t>(actor);
    result.peaks.push_back(sim::memory_peak(simulated.program, simulated.timeline, of).total);
  }
  return result;
}

Seconds median(const std::vector<Seconds>& times) { return calibrate::median_of(times).median; }

/// Of the rank whose buffers hold most.
void print_memory(const execute::Trial& trial, const Predicted& expected) {
  const auto fullest =
      static_cast<std::size_t>(std::ranges::max_element(trial.peaks) - trial.peaks.begin());
  fmt::print("  live bytes at the peak: measured {:.0f} on rank {}, in {:.0f}",
             trial.peaks[fullest].value, fullest, trial.extents[fullest].value);
  if (!expected.peaks.empty()) {
    const double more = expected.peaks[fullest].value - trial.peaks[fullest].value;
    fmt::print(", predicted {:.0f} ({})", expected.peaks[fullest].value,
               more == 0 ? "the same" : fmt::format("{:+.0f}", more));
  }
  fmt::print("\n");
}

void print(const Lowered& lowered, const Executed& executed, const std::string& precision,
           const Predicted& expected) {
  const execute::Agreement& agreement = executed.agreement;
  fmt::print("{}: {} ranks, {}, {} micro-batches\n", lowered.run.name,
             lowered.program.devices.size(), precision, lowered.plan.micro_batches);
  fmt::print(
      "  one device: {}; gradients of {} parameters differ by at most {:.1e} ({}), losses of "
      "{} iterations by {:.1e}\n",
      executed.agrees ? "agrees" : "DISAGREES", agreement.parameters, agreement.gradients,
      agreement.worst, agreement.trained_losses.size(), agreement.losses);
  if (!executed.trial) return;
  const std::vector<Seconds>& iterations = executed.trial->iterations;
  const auto [least, most] = std::ranges::minmax(iterations);
  const Seconds middle = median(iterations);
  fmt::print("  iteration: measured {} (median of {}, {} to {})", to_text(middle),
             iterations.size(), to_text(least), to_text(most));
  if (expected.iteration) {
    fmt::print(", predicted {} ({:+.1f} %)\n", to_text(*expected.iteration),
               100 * (*expected.iteration / middle - 1));
  } else {
    fmt::print("; no prediction: {}\n", expected.why_not);
  }
  print_memory(*executed.trial, expected);
}

Json list_of(const std::vector<Bytes>& by_rank) {
  Json list = Json::array();
  for (const Bytes bytes : by_rank) list.push(bytes.value);
  return list;
}

Json to_json(const Lowered& lowered, const Executed& executed, const std::string& precision,
             const Predicted& expected) {
  const calibrate::Machine machine = calibrate::this_machine();
  Json losses = Json::array(), times = Json::array();
  for (const double loss : executed.agreement.trained_losses) losses.push(loss);
  if (executed.trial) {
    for (const Seconds time : executed.trial->iterations) times.push(time.value);
  }
  Json json = Json::object();
  json.set("schema", 1).set("scenario", lowered.run.file).set("run", lowered.run.name);
  json.set("status", executed.trial ? "measured" : "checked")
      .set("date", calibrate::today())
      .set("host", machine.host);
  json.set("processor", machine.processor).set("precision", precision);
  json.set("ranks", static_cast<int>(lowered.program.devices.size())).set("losses", losses);
  json.set("agrees", executed.agrees)
      .set("gradient_difference", executed.agreement.gradients)
      .set("loss_difference", executed.agreement.losses);
  json.set("iteration_times_s", times);
  if (executed.trial) {
    json.set("iteration_time_s", median(executed.trial->iterations).value);
    json.set("peak_live_bytes", list_of(executed.trial->peaks));
    json.set("arena_bytes", list_of(executed.trial->extents));
  }
  if (!expected.peaks.empty()) json.set("predicted_peak_live_bytes", list_of(expected.peaks));
  if (expected.iteration) json.set("predicted_iteration_time_s", expected.iteration->value);
  return json;
}

Options execute_options() {
  Options options("stratagem execute",
                  "Run a plan on processors, a rank for every device: under mpirun or srun, "
                  "alone if it has one device, or, to check what it computes, as threads that take "
                  "turns.");
  options.text("scenario", "scenario file");
  options.text("run", "the run (default: the first)", "");
  options.text("backend", "what runs the kernels", "cpu");
  options.text("precision", "fp32 or fp64, in which everything is held and computed", "fp32");
  options.whole("steps", "iterations that are timed, after three that are checked and a warm-up",
                5);
  options.text("json", "write what was measured as JSON");
  options.text("trace", "write when the tasks of the median iteration ran, as simulate does");
  options.flag("in-process", "ranks are threads that take turns: checked, not timed");
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

std::string trace(const Lowered& lowered, const execute::Trial& trial) {
  const calibrate::Machine machine = calibrate::this_machine();
  return report::chrome_trace(
      lowered.program, trial.timeline,
      {.run = lowered.run.name,
       .provenance = "measured on " + machine.host + ", " + calibrate::today(),
       .iteration = median(trial.iterations),
       .peaks = trial.peaks});
}

/// Prints and writes; an exit code. Called by one rank.
int conclude(const Lowered& lowered, const Executed& executed, const std::string& precision,
             const Arguments& asked) {
  const Predicted expected = executed.trial ? predicted(lowered, precision) : Predicted{};
  print(lowered, executed, precision, expected);
  std::vector<Output> outputs;
  if (asked.has("json"))
    outputs.push_back(
        {asked.text("json"), to_json(lowered, executed, precision, expected).text(2) + "\n"});
  if (asked.has("trace") && executed.trial)
    outputs.push_back({asked.text("trace"), trace(lowered, *executed.trial),
                       " (open it in https://ui.perfetto.dev)"});
  write_below(outputs);
  return executed.agrees ? done : check_failed;
}

int execute_in(const Lowered& lowered, const Arguments& asked, int steps,
               kernels::Communicator& world) {
  const std::string precision = asked.text("precision");
  const Executed executed = precision == "fp64" ? execute_as<double>(lowered, steps, world)
                                                : execute_as<float>(lowered, steps, world);
  if (world.rank() > 0) return done;  // the first one says how it went
  return conclude(lowered, executed, precision, asked);
}

void check_arguments(const Arguments& asked) {
  const std::string backend = asked.text("backend"), precision = asked.text("precision");
  if (backend != "cpu")
    throw UsageError("--backend knows cpu alone so far; not \"" + backend + "\"");
  if (precision != "fp32" && precision != "fp64")
    throw UsageError("--precision is fp32 or fp64, not \"" + precision + "\"");
  if (asked.whole("steps") < 0) throw UsageError("--steps is 0 or more");
}

/// Reads, lowers and refuses: all ranks find the same.
Lowered prepared(const search::Scenario& scenario, const Arguments& asked) {
  Lowered lowered = lower(chosen_run(scenario, asked));
  refuse(lowered);
  return lowered;
}

int in_process(const Arguments& asked) {
  check_arguments(asked);
  const search::Scenario scenario = search::read_scenario(asked.required("scenario"));
  const Lowered lowered = prepared(scenario, asked);
  if (asked.has("json")) check_outputs({{asked.text("json"), ""}}, {scenario.file});
  int code = done;
  kernels::run_ranks(static_cast<int>(lowered.program.devices.size()),
                     [&](kernels::Communicator& world) {
                       const int one = execute_in(lowered, asked, 0, world);
                       if (world.rank() == 0) code = one;
                     });
  return code;
}

int on_rank(const Arguments& asked, kernels::Communicator& world) {
  check_arguments(asked);
  const search::Scenario scenario = search::read_scenario(asked.required("scenario"));
  const Lowered lowered = prepared(scenario, asked);
  const auto ranks = static_cast<int>(lowered.program.devices.size());
  if (world.size() != ranks) {
    const std::string number = std::to_string(ranks);
    throw InputError(
        lowered.run.file, lowered.run.path,
        number + " ranks, as with `mpirun -n " + number + " stratagem execute`, or --in-process",
        std::to_string(world.size()));
  }
  calibrate::on_first(world, [&] {
    if (asked.has("json")) check_outputs({{asked.text("json"), ""}}, {scenario.file});
  });
  return execute_in(lowered, asked, asked.whole("steps"), world);
}

}  // namespace

int execute(const std::vector<std::string>& line) {
  const Arguments asked(execute_options(), line);
  if (asked.helped()) return done;
  if (asked.has("in-process")) return in_process(asked);
  // The others wait while the first one is the single device of the check.
  return on_ranks(Seconds{600}, check_failed, [&](kernels::Communicator& world) {
    try {
      return on_rank(asked, world);
    } catch (const InputError&) {  // which all ranks find; the first says it
      if (world.rank() == 0) throw;
      throw calibrate::AnotherRankFailed{};
    }
  });
}

}  // namespace stratagem::commands
