// Runs experiments one after another and records each.
#include "calibrate/measure/measure.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include "calibrate/measure/collective_experiments.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/ranks.hpp"
#include "calibrate/measure/recorder.hpp"
#include "calibrate/measure/stopwatch.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Communicator;

Effort effort_of(Sweep sweep) {
  return {.budget = sweep == Sweep::quick ? Seconds{0.4} : Seconds{2}};
}

Rates measured_rates(const CpuExperiments& experiments, Communicator& ranks) {
  const Effort effort{.budget = Seconds{2}};
  const auto& [product, sum, ignored] = experiments;
  return {.fp32 = product.flops / time_of(product.prepare(), effort, ranks).median,
          .memory = sum.bytes / time_of(sum.prepare(), effort, ranks).median};
}

/// All experiments that are asked for, those of kernels first.
std::vector<Experiment> wanted(const CpuExperiments& kernels, const Assignment& assignment,
                               Bytes cache, Communicator& ranks) {
  std::vector<Experiment> all = kernels.all;
  for (Experiment& e : collective_experiments(assignment.sweep, cache, ranks))
    all.push_back(std::move(e));
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
Progress progress(std::size_t done, const std::vector<Experiment>& all, Seconds spent) {
  const double left = static_cast<double>(all.size() - done);
  return {.done = done,
          .all = all.size(),
          .left = done == 0 ? Seconds{} : left / static_cast<double>(done) * spent,
          .name = all[done].name()};
}

}  // namespace

std::size_t measure_cpu(const Assignment& assignment, Communicator& ranks,
                        const std::function<void(const Progress&)>& tell) {
  const bool quick = assignment.sweep == Sweep::quick;
  const Machine machine =
      machine_of(ranks, assignment.file + (quick ? " --quick " : " ") + assignment.only);
  std::optional<Recorder> recorder;  // of rank 0
  on_first(ranks, [&] { recorder.emplace(assignment.file, machine); });
  // A rank's share, where ranks are spread evenly over servers.
  const Bytes cache = static_cast<double>(machine.servers) / machine.ranks * machine.cache;
  const CpuExperiments kernels = cpu_experiments(assignment.sweep, cache);
  std::array<double, 1> has_rates = {recorder && recorder->has_rates() ? 1.0 : 0.0};
  ranks.broadcast(0, std::span<double>(has_rates));
  if (has_rates[0] == 0) {
    const Rates rates = measured_rates(kernels, ranks);
    on_first(ranks, [&] { recorder->set(rates); });
  }
  const std::vector<Experiment> todo =
      missing(wanted(kernels, assignment, cache, ranks), recorder, ranks);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (recorder) tell(progress(i, todo, Seconds{spent.count()}));
    const Timed time = timed(todo[i], assignment, machine, ranks);
    on_first(ranks, [&] { recorder->add(todo[i], time); });
  }
  return todo.size();
}

}  // namespace stratagem::calibrate
