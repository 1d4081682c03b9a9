// `stratagem execute`: runs a run's program on this machine's processors or GPUs, and compares it
// with one device and with its prediction.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/ranks.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/execution/device_choice.hpp"
#include "commands/execution/executed.hpp"
#include "commands/execution/free_memory.hpp"
#include "commands/execution/journal.hpp"
#include "commands/execution/memory_check.hpp"
#include "commands/outputs.hpp"
#include "commands/ranks/on_ranks.hpp"
#include "commands/ranks/rank_agreement.hpp"
#include "execute/gpu/gpu_engine.hpp"
#include "execute/host_engine.hpp"
#include "execute/stale_weights.hpp"
#include "kernels/core_speed.hpp"
#include "kernels/device.hpp"
#include "kernels/half.hpp"
#include "kernels/ranks/thread_communicator.hpp"
#include "kernels/ranks/world.hpp"
#include "kernels/stolen_time.hpp"
#include "lowering/lower.hpp"
#include "program/program_text.hpp"
#include "report/traces/trace.hpp"
#include "strategies/parallel/all.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {
namespace {

Lowered lower(const study::Run& run) {
  try {
    const JsonReader nothing = JsonReader::from_text("{}", run.origin.file);
    strategies::Plan plan = study::plan_of(run);
    strategies::Plan alone = strategies::compose(*run.graph, run.batch.micro_batches, {}, nothing);
    program::Program program = study::program_of(run, plan);
    program::Program program_alone = lowering::lower(alone, run.stack, run.training);
    program_alone = execute::reading_as(program, std::move(program_alone), alone.graph());
    return {run, std::move(plan), std::move(alone), std::move(program), std::move(program_alone)};
  } catch (const InputError& error) {
    throw study::located(run, error);
  }
}

/// Throws InputError for what the interpreter cannot run.
void refuse(const Lowered& lowered, execute::Backend backend) {
  const study::Run& run = lowered.run;
  if (const std::string why = execute::refusal(lowered.program, lowered.plan.graph(), backend);
      !why.empty())
    throw InputError(run.origin.file, run.origin.path, "a run whose every task can be executed",
                     why);
  if (run.training.optimizer.name != "adam" && run.training.optimizer.name != "adamw")
    throw InputError(run.origin.file, run.origin.path + "/training/optimizer", "adam or adamw",
                     run.training.optimizer.name);
}

/// Checks unless `executed` says that nobody asked for it, then times, and notes there what is
/// done.
template <typename T>
void execute_as(const Lowered& lowered, int steps, kernels::Communicator& world,
                execute::CurrentTask& current, Journal& journal, Executed& executed,
                const execute::MakeEngine<T>& make_engine, const execute::Watch& watch) {
  const execute::Settings settings{
      .micro_batches = lowered.plan.micro_batches,
      .optimizer = {.weight_decay = lowered.run.training.optimizer.name == "adamw" ? 0.01 : 0},
      .current = &current};
  const execute::Runnable plan{lowered.program, lowered.plan.graph()};
  const execute::Runnable alone{lowered.program_alone, lowered.alone.graph()};
  // Where iterations overlap, three whose weights are all as old as they will be.
  const int checked = 3 + lowered.program.lag;
  if (executed.checked) {
    execute::Agreement agreement =
        execute::compare<T>(plan, alone, settings, world, checked, make_engine);
    journal.change([&] {
      executed.agrees = execute::agrees<T>(agreement);
      executed.agreement = std::move(agreement);
    });
  }
  if (steps == 0) return;
  current.during("the warm-up");
  execute::Interpreter<T> rank(lowered.program, lowered.plan.graph(), settings, world,
                               make_engine());
  rank.iterate();
  current.during("those that are timed");
  const auto note = [&](const execute::TimedIteration& iteration) {
    journal.change([&] { executed.iterations.push_back(iteration); });
  };
  execute::Trial trial = execute::trial(lowered.program, rank, world, steps, note, watch);
  journal.change([&] { executed.trial = std::move(trial); });
}

/// The same in the type and on what was asked for.
void execute_on(const Unit& unit, const Lowered& lowered, int steps, kernels::Communicator& world,
                const std::optional<kernels::GivingUp>& nccl, execute::CurrentTask& current,
                Journal& journal, Executed& executed) {
  std::optional<kernels::Yardstick> yardstick;
  if (!unit.is_gpu() && steps > 0) yardstick.emplace();
  execute::Watch watch;  // of processors: what a GPU does it does while the host's are away, too
  if (yardstick)
    watch = {.yardstick = &*yardstick, .stolen = [] { return kernels::stolen_times(); }};
  const auto as = [&]<typename T>(const execute::MakeEngine<T>& make_engine) {
    execute_as<T>(lowered, steps, world, current, journal, executed, make_engine, watch);
  };
  const auto on_processor = [&]<typename T>() {
    as.template operator()<T>([] { return std::make_unique<execute::HostEngine<T>>(); });
  };
  const auto on_gpu = [&]<typename T>() {
    as.template operator()<T>([&] { return execute::gpu_engine<T>(unit.device, nccl); });
  };
  if (!unit.is_gpu()) {
    unit.precision == "fp64" ? on_processor.operator()<double>() : on_processor.operator()<float>();
  } else if (unit.precision == "fp32") {
    on_gpu.operator()<float>();
  } else {
    unit.precision == "fp16" ? on_gpu.operator()<kernels::Half>()
                             : on_gpu.operator()<kernels::BFloat16>();
  }
}

Options execute_options() {
  Options options(
      "stratagem execute",
      "Run a plan on processors or GPUs, a rank for every device: under mpirun or srun, "
      "alone if it has one device, or, to check what it computes, as threads that take "
      "turns.");
  options.text("scenario", "scenario file");
  options.text("run", "the run (default: the first)", "");
  options.text("backend", "what runs the kernels: cpu, or cuda (a GPU for every rank, in turns)",
               "cpu");
  options.among({"cpu", "cuda"});
  options.text("precision",
               "in which everything is held: fp32 or fp64 on cpu; fp32, fp16 or bf16 on cuda",
               "fp32");
  options.among({"fp32", "fp64", "fp16", "bf16"});
  options.text(
      "collectives",
      "what moves messages of GPUs' collectives: nccl, host, or auto (nccl where every rank has "
      "a GPU to itself and finds it)",
      "auto");
  options.among({"auto", "nccl", "host"});
  options.whole("steps",
                "iterations that are timed, after those that are checked and a warm-up; more if "
                "some are disturbed",
                5);
  options.flag("unchecked",
               "do not compare with one device first, for models that a processor is too slow for");
  options.text("json", "write what was measured as JSON");
  options.text("trace", "write when the tasks of the median iteration ran, as simulate does");
  options.flag("in-process", "ranks are threads that take turns: checked, not timed");
  options.flag("beyond-memory", "go on where more memory is needed than is available");
  add_settings(options);
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

std::string trace(const Lowered& lowered, const execute::Trial& trial) {
  return report::chrome_trace(
      lowered.program, trial.timeline,
      {.run = lowered.run.name,
       .provenance = "measured on " + calibrate::this_machine().host + ", " + calibrate::today(),
       .iteration = trial.recorded,
       .peaks = trial.peaks});
}

/// Prints and writes; an exit code. Called by one rank.
int show_and_write(const Lowered& lowered, const Executed& executed, const Unit& unit,
                   const Arguments& asked) {
  const std::string untimed =
      asked.has("in-process") ? "ranks of --in-process take turns" : "--steps is 0";
  const Predicted expected = executed.trial ? predicted(lowered, unit, executed.trial->timeline)
                                            : Predicted{{}, untimed, {}};
  std::vector<Output> outputs;
  if (asked.has("json"))
    outputs.push_back(
        {asked.text("json"), to_json(lowered, executed, unit, expected).text(2) + "\n"});
  if (executed.trial && asked.has("trace"))
    outputs.push_back({asked.text("trace"), trace(lowered, *executed.trial),
                       " (open it in https://ui.perfetto.dev)"});
  print(for_people(outputs), lowered, executed, unit, expected);
  write_below(outputs);
  return executed.agrees || !executed.checked ? done : check_failed;
}

/// Does `work`, and says what goes wrong there with the task that the rank is at, as
/// execute::Fault. What all ranks find, a loss that is no number, they throw as it is.
void guarded(Journal& journal, const std::function<void()>& work) {
  std::string what;
  try {
    return work();
  } catch (const execute::NotFinite& fault) {
    journal.stopped(fault.what());
    throw;
  } catch (const std::bad_alloc&) {
    what = "out of memory";
  } catch (const kernels::DeviceOutOfMemory& error) {
    what = std::string("out of memory on its GPU: ") + error.what();
  } catch (const std::logic_error& error) {
    what = std::string("internal error: ") + error.what();
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  what = journal.placed(what);
  journal.stopped(what);
  throw execute::Fault(what);
}

/// `world` is null where ranks are threads of this process.
int execute_in(const Lowered& lowered, const Arguments& asked, const Unit& unit, int steps,
               kernels::Communicator& ranks, kernels::World* world) {
  const std::string file = asked.text_or_nothing("json");
  Executed executed;
  executed.steps = steps;
  executed.checked = !asked.has("unchecked");
  {
    execute::CurrentTask current;
    const auto describe = [&] { return to_json(lowered, executed, unit, {}); };
    Journal journal({.rank = ranks.rank(), .file = file, .describe = describe}, current);
    ranks.barrier();  // the file is there, for whoever has to write it
    if (world != nullptr) journal.watch(*world);
    std::optional<kernels::GivingUp> nccl;
    if (world != nullptr && !unit.nccl.empty())
      nccl.emplace().gone = [world] { return world->gone(); };
    guarded(journal,
            [&] { execute_on(unit, lowered, steps, ranks, nccl, current, journal, executed); });
  }
  if (ranks.rank() > 0) return done;  // the first one says how it went
  return show_and_write(lowered, executed, unit, asked);
}

void check_arguments(const Arguments& asked, int ranks) {
  check_unit(asked);
  if (asked.whole("steps") < 0) throw UsageError("--steps is 0 or more");
  if (asked.has("unchecked") && (asked.whole("steps") == 0 || asked.has("in-process")))
    throw UsageError(
        "--unchecked is for runs that are timed, which --steps 0 and --in-process are not");
  if (asked.whole("steps") == 0 && asked.has("trace"))
    throw UsageError("--trace is of an iteration that is timed: --steps is 1 or more for it");
  if (!asked.has("in-process")) return;
  if (asked.has("trace")) throw UsageError("--trace is of timed iterations; --in-process has none");
  if (asked.has("steps"))
    throw UsageError("--steps is for ranks that are timed, which those of --in-process are not");
  if (ranks > 1) throw UsageError("--in-process is for one process, without a launcher");
}

/// Reads, lowers and refuses.
Lowered prepared(const study::Scenario& scenario, const Arguments& asked) {
  Lowered lowered = lower(chosen_run(scenario, asked));
  refuse(lowered, asked.text("backend") == "cuda" ? execute::Backend::cuda : execute::Backend::cpu);
  if (lowered.program.lag > 0 && asked.has("trace"))
    throw UsageError(
        "--trace is of an iteration by itself, which a schedule without a flush has not");
  return lowered;
}

/// Throws UsageError for an output that would take the place of an input, InputError for one that
/// cannot be written.
void check_output(const study::Run& run, const Arguments& asked) {
  std::vector<Output> outputs;
  for (const char* option : {"json", "trace"}) {
    if (!asked.has(option)) continue;
    const std::string file = asked.text(option);
    for (const std::string& input : run.origin.files) {
      std::error_code apart;  // one of them is nowhere
      if (std::filesystem::equivalent(input, file, apart))
        throw UsageError(fmt::format("--{} would write over {}, which is read", option, input));
    }
    outputs.push_back({file, ""});
  }
  check_outputs(outputs, {});
}

Needed needed_by(const Lowered& lowered, const Unit& unit, int rank) {
  return needed({lowered.program, lowered.plan.graph()},
                {lowered.program_alone, lowered.alone.graph()}, unit, rank);
}

int in_process(const Arguments& asked) {
  const Unit first = unit_of(asked, 0);
  const study::Scenario scenario = changed_scenario(asked);
  const Lowered lowered = prepared(scenario, asked);
  check_output(lowered.run, asked);
  const auto ranks = static_cast<int>(lowered.program.devices.size());
  Bytes host;
  std::vector<Bytes> gpus(static_cast<std::size_t>(std::max(first.devices, 1)));
  for (int rank = 0; rank < ranks; ++rank) {
    const Unit unit = unit_of(asked, rank);
    const Needed one = needed_by(lowered, unit, rank);
    host += one.host;
    gpus[static_cast<std::size_t>(unit.device)] += one.gpu;
  }
  for (int rank = 0; rank < std::min(ranks, static_cast<int>(gpus.size())); ++rank)
    check_room(lowered.run, asked, unit_of(asked, rank), needed_by(lowered, first, rank),
               {.host = host, .gpu = gpus[static_cast<std::size_t>(rank)]});
  int code = done;
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    const Unit unit = unit_of(asked, world.rank());
    const int one = execute_in(lowered, asked, unit, 0, world, nullptr);
    if (world.rank() == 0) code = one;
  });
  return code;
}

void check_ranks(const Lowered& lowered, int size) {
  const auto ranks = static_cast<int>(lowered.program.devices.size());
  if (size == ranks) return;
  const std::string number = std::to_string(ranks);
  throw InputError(
      lowered.run.origin.file, lowered.run.origin.path,
      number + " ranks, as with `mpirun -n " + number + " stratagem execute`, or --in-process",
      std::to_string(size));
}

/// A UsageError is the first rank's to say: another one that has no GPU throws InputError.
Unit own_unit(const Arguments& asked, int rank, int rank_on_server) {
  try {
    return unit_of(asked, rank_on_server);
  } catch (const UsageError& error) {
    if (rank == 0) throw;
    throw InputError(asked.required("scenario"), "", "a GPU for every rank", error.what());
  }
}

int on_rank(const Arguments& asked, kernels::World& world) {
  kernels::Communicator& ranks = world.all();
  const std::string file = asked.required("scenario");
  expect_alike(ranks, "the scenario", bytes_of(file));
  const int here = rank_on_server(ranks);
  std::optional<study::Scenario> scenario;
  std::optional<Lowered> lowered;
  Unit unit;
  all_or_none(ranks, [&] {
    unit = own_unit(asked, ranks.rank(), here);
    scenario = changed_scenario(asked);
    lowered.emplace(prepared(*scenario, asked));
    check_ranks(*lowered, ranks.size());
  });
  unit.nccl = collectives_of(asked, unit, ranks);
  expect_alike(ranks, "the program", program::to_text(lowered->program, lowered->plan.graph()));
  const Needed need = needed_by(*lowered, unit, ranks.rank());
  const Needed all{.host = needed_on_server(ranks, need.host),
                   .gpu = needed_on_server(ranks, need.gpu, unit.id)};
  all_or_none(ranks, [&] {
    check_room(lowered->run, asked, unit, need, all);
    if (ranks.rank() == 0) check_output(lowered->run, asked);
  });
  return execute_in(*lowered, asked, unit, asked.whole("steps"), ranks, &world);
}

int run_execute(const std::vector<std::string>& line) {
  // The others wait while the first one is the single device of the check.
  return on_ranks(Seconds{600}, check_failed, [&](kernels::World& world) -> int {
    kernels::Communicator& ranks = world.all();
    expect_alike(ranks, "the arguments", fmt::format("{}", fmt::join(line, " ")));
    const Arguments asked(execute_options(), line);
    if (asked.has("help") && ranks.rank() > 0) return done;
    if (asked.helped()) return done;
    check_arguments(asked, ranks.size());
    try {
      return asked.has("in-process") ? in_process(asked) : on_rank(asked, world);
    } catch (const execute::NotFinite& fault) {  // which all ranks find; the first says it
      if (ranks.rank() > 0) return done;
      fmt::print(stderr, "stratagem: {}\n", fault.what());
      return check_failed;
    }
  });
}

}  // namespace

Command execute() {
  return {"execute", "run a plan for real, and hold it to one device and to its prediction",
          &execute_options, &run_execute};
}

}  // namespace stratagem::commands
