// Runs experiments one after another and records each.
#include "calibrate/measure/measure.hpp"

#include <chrono>
#include <vector>

#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/recorder.hpp"
#include "calibrate/measure/stopwatch.hpp"

namespace stratagem::calibrate {
namespace {

Effort effort_of(Sweep sweep) {
  return {.budget = sweep == Sweep::quick ? Seconds{0.4} : Seconds{2}};
}

Rates measured_rates(const CpuExperiments& experiments) {
  const Effort effort{.budget = Seconds{2}};
  const auto& [product, sum, ignored] = experiments;
  return {.fp32 = product.flops / time_of(product.prepare(), effort).median,
          .memory = sum.bytes / time_of(sum.prepare(), effort).median};
}

}  // namespace

std::size_t measure_cpu(const std::string& file, Sweep sweep,
                        const std::function<void(const Progress&)>& tell) {
  const Machine machine = this_machine();
  Recorder recorder(file, machine);
  const CpuExperiments experiments = cpu_experiments(sweep, machine.cache);
  if (!recorder.has_rates()) recorder.set(measured_rates(experiments));
  std::vector<Experiment> missing = experiments.all;
  std::erase_if(missing, [&](const Experiment& e) { return recorder.has(e); });
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const double left = static_cast<double>(missing.size() - i);
    tell({.done = i,
          .all = missing.size(),
          .left = i == 0 ? Seconds{} : Seconds{spent.count() / static_cast<double>(i) * left},
          .name = missing[i].name()});
    recorder.add(missing[i], time_of(missing[i].prepare(), effort_of(sweep)));
  }
  return missing.size();
}

}  // namespace stratagem::calibrate
