// Runs experiments one after another and records each.
#include "calibrate/measure/measure.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/fit/pace.hpp"
#include "calibrate/measure/collective_experiments.hpp"
#include "calibrate/measure/fresh_experiments.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/ranks.hpp"
#include "calibrate/measure/recorder.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "cost/kernel_time.hpp"
#include "cost/profile.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Communicator;

Effort effort_of(Sweep sweep) {
  return {.budget = sweep == Sweep::quick ? Seconds{0.4} : Seconds{2}};
}

Rates measured_rates(const CpuExperiments& experiments, Communicator& ranks) {
  const Effort effort{.budget = Seconds{2}};
  const Experiment& product = experiments.peak;
  const Experiment& sum = experiments.bandwidth;
  const Timed multiplied = time_of(product.prepare(), effort, ranks);
  const Timed summed = time_of(sum.prepare(), effort, ranks);
  return {.fp32 = product.flops / multiplied.median,
          .memory = summed.pace / multiplied.pace * (sum.bytes / summed.median),
          .pace = multiplied.pace};
}

/// All experiments that are asked for, those of kernels first; what a scenario shares with the
/// sweep or with one before it stands there only.
std::vector<Experiment> wanted(const CpuExperiments& kernels, const Assignment& assignment,
                               Bytes cache, Communicator& ranks) {
  std::vector<Experiment> all = kernels.all;
  std::set<std::string> names;
  for (const Experiment& e : all) names.insert(e.name());
  for (const ScenarioKernels& scenario : assignment.scenarios) {
    for (Experiment& e : scenario_experiments(scenario, kernels.pool))
      if (names.insert(e.name()).second) all.push_back(std::move(e));
  }
  for (Experiment& e :
       collective_experiments(assignment.sweep, cache, ranks, assignment.working_set))
    all.push_back(std::move(e));
  on_first(ranks, [&] { check_only(assignment.only, all); });
  std::erase_if(all, [&](const Experiment& e) { return !e.name().starts_with(assignment.only); });
  return all;
}

/// Rank 0 knows what the file has; the others are told which experiments it lacks.
std::vector<Experiment> missing(std::vector<Experiment> all,
                                const std::optional<Recorder>& recorder, Communicator& ranks) {
  std::vector<double> lacks(all.size(), 1);
  for (std::size_t i = 0; recorder && i < all.size(); ++i) lacks[i] = recorder->has(all[i]) ? 0 : 1;
  ranks.broadcast(0, std::span(lacks));
  std::vector<Experiment> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (lacks[i] > 0) result.push_back(std::move(all[i]));
  return result;
}

Timed timed(const Experiment& experiment, const Assignment& assignment, const Machine& machine,
            Communicator& ranks) {
  const Effort effort = effort_of(assignment.sweep);
  if (!experiment.kind.starts_with("mpi_")) return time_of(experiment.prepare(), effort, ranks);
  return time_of_collective(experiment.prepare(), effort, ranks, machine.servers == 1);
}

/// How far it is, by what the experiments before took.
class Clock {
 public:
  explicit Clock(std::size_t all) : all_(all) {}

  [[nodiscard]] Progress at(std::size_t done, const Experiment& next) const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    const double left = static_cast<double>(all_ - done);
    const double each = done == 0 ? 0 : spent.count() / static_cast<double>(done);
    return {.done = done, .all = all_, .left = Seconds{left * each}, .name = next.name()};
  }

 private:
  std::size_t all_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// A rank's share of the last cache, where ranks are spread evenly over servers.
Bytes cache_of_rank(const Machine& machine) {
  return static_cast<double>(machine.servers) / machine.ranks * machine.cache;
}

/// A profile of what this machine is, or nothing can be said of its predictions.
cost::Profile own_profile(const std::string& file, const Machine& machine) {
  const cost::Profile profile = cost::read_profile(file);
  if (!profile.of_processor() || profile.gpu != machine.processor)
    throw InputError(file, "/gpu",
                     "\"" + machine.processor +
                         "\", this machine, as `calibrate fit` "
                         "writes it of its measurements",
                     "\"" + profile.gpu + "\"");
  return profile;
}

}  // namespace

std::size_t measure_cpu(const Assignment& assignment, Communicator& ranks,
                        const std::function<void(const Progress&)>& tell) {
  const bool quick = assignment.sweep == Sweep::quick;
  std::string arguments = assignment.file + (quick ? " --quick " : " ") + assignment.only;
  if (assignment.working_set) arguments += " " + to_text(*assignment.working_set);
  for (const ScenarioKernels& scenario : assignment.scenarios) arguments += " " + scenario.name;
  const Machine machine = machine_of(ranks, arguments);
  std::optional<Recorder> recorder;  // of rank 0
  on_first(ranks, [&] { recorder.emplace(assignment.file, machine, assignment.working_set); });
  const Bytes cache = cache_of_rank(machine);
  const CpuExperiments kernels = cpu_experiments(assignment.sweep, cache, assignment.working_set);
  // Before any runs, which fills the pool: all ask it for room.
  std::vector<Experiment> all = wanted(kernels, assignment, cache, ranks);
  std::array<double, 1> has_rates = {recorder && recorder->has_rates() ? 1.0 : 0.0};
  ranks.broadcast(0, std::span<double>(has_rates));
  if (has_rates[0] == 0) {
    const Rates rates = measured_rates(kernels, ranks);
    on_first(ranks, [&] { recorder->set(rates); });
  }
  const std::vector<Experiment> todo = missing(std::move(all), recorder, ranks);
  const Clock clock(todo.size());
  for (std::size_t i = 0; i < todo.size(); ++i) {
    if (recorder) tell(clock.at(i, todo[i]));
    const Timed time = timed(todo[i], assignment, machine, ranks);
    on_first(ranks, [&] { recorder->add(todo[i], time); });
  }
  return todo.size();
}

FreshCheck check_cpu(const CheckAssignment& assignment, Communicator& ranks,
                     const std::function<void(const Progress&)>& tell) {
  const Machine machine =
      machine_of(ranks, "check " + assignment.file + " " + std::to_string(assignment.seed) + " " +
                            std::to_string(assignment.shapes));
  cost::Profile profile;
  std::vector<FreshExperiment> todo;
  const auto draw = [&] {
    profile = own_profile(assignment.file, machine);
    todo = fresh_experiments(profile, assignment.seed, assignment.shapes, cache_of_rank(machine),
                             assignment.working_set);
  };
  on_first(ranks, draw);  // which says what is wrong
  together(ranks, draw);
  FreshCheck check{.profile = profile.name,
                   .gpu = profile.gpu,
                   .ranks = machine.ranks,
                   .busy_ranks = machine.ranks_of_server(),
                   .profile_busy_ranks = profile.busy_ranks,
                   .seed = assignment.seed,
                   .limit = assignment.limit,
                   .shapes = {}};
  const Clock clock(todo.size());
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const Experiment& experiment = todo[i].experiment;
    if (ranks.rank() == 0) tell(clock.at(i, experiment));
    const Timed time = time_of(experiment.prepare(), effort_of(Sweep::quick), ranks);
    check.shapes.push_back({.group = todo[i].group,
                            .name = experiment.name(),
                            .predicted = cost::kernel_time(kernel_of(experiment), profile),
                            .measured = profile.pace
                                            ? at_pace(time.median, time.pace, profile.pace->value)
                                            : time.median,
                            .spread = time.spread});
  }
  return check;
}

}  // namespace stratagem::calibrate
