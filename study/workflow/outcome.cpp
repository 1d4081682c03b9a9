// Simulates phases, and adds their times by step and what they hold by pool.
#include "study/workflow/outcome.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "study/workflow/held_weights.hpp"

namespace stratagem::study {
namespace {

/// What the phases of one pool hold, phase by phase.
class Pool {
 public:
  explicit Pool(const Run& run) : gpus_(run.gpus), memory_(run.profile.memory.size.value) {}

  void add(const Phase& phase, Held held) {
    for (const auto& [other, there] : phases_) {
      if (other->weights != phase.weights) continue;
      const std::string parameter = divided_differently(held, there);
      if (parameter.empty()) continue;
      phase.said.fail("\"weights\" of another name: phase " + other->name + " divides " +
                          phase.weights + " differently (" + parameter +
                          "), and copying from one division to the other is not modelled",
                      phase.weights);
    }
    phases_.emplace_back(&phase, std::move(held));
  }

  [[nodiscard]] int gpus() const { return gpus_; }

  [[nodiscard]] PoolMemory fullest(const std::string& name) const {
    PoolMemory most;
    for (int device = 0; device < gpus_; ++device) {
      for (const auto& [phase, held] : phases_) {
        PoolMemory one = on(device, *phase, held);
        if (one.used() > most.used()) most = std::move(one);
      }
    }
    most.pool = name;
    return most;
  }

 private:
  [[nodiscard]] PoolMemory on(int device, const Phase& phase, const Held& held) const {
    PoolMemory memory{.gpus = gpus_, .device = device, .phase = phase.name, .memory = memory_};
    for (const auto& [other, there] : phases_) {
      Bytes& kept = memory.weights[other->weights];
      kept = std::max(kept, there.kept[device]);
    }
    memory.caches = held.caches[device];
    memory.beside = std::max(Bytes{}, held.used[device] - held.kept[device] - held.caches[device]);
    return memory;
  }

  int gpus_;
  Bytes memory_;
  std::vector<std::pair<const Phase*, Held>> phases_;
};

/// The larger of what two passes use, device by device.
Held held_by(const Generation& generation) {
  Held held = held_by(generation.ends.front().run, generation.ends.front().simulated);
  const Held last = held_by(generation.ends.back().run, generation.ends.back().simulated);
  for (std::size_t device = 0; device < held.used.size(); ++device)
    held.used[device] = std::max(held.used[device], last.used[device]);
  return held;
}

/// A phase alone, from 0 on, and what it holds.
std::pair<PhaseOutcome, Held> simulate_phase(const Phase& phase, const SimulateOptions& options) {
  PhaseOutcome outcome{
      .name = phase.name, .run = phase.run->name, .pool = phase.pool, .repeat = phase.repeat};
  if (phase.answer_tokens > 0) {
    outcome.generation = generate(*phase.run, phase.answer_tokens, options);
    outcome.time = phase.repeat * outcome.generation->time;
    Held held = held_by(*outcome.generation);
    outcome.generation->ends.clear();
    return {std::move(outcome), std::move(held)};
  }
  const Simulated simulated = simulate(*phase.run, options);
  const sim::Metrics& metrics = *simulated.outcome.metrics;
  outcome.time = metrics.makespan + (phase.repeat - 1) * metrics.iteration_time;
  return {std::move(outcome), held_by(*phase.run, simulated)};
}

WorkflowOutcome simulated(const Workflow& workflow, const SimulateOptions& options) {
  WorkflowOutcome result{.name = workflow.name};
  std::map<std::string, Pool> pools;
  for (const std::vector<Phase>& step : workflow.steps) {
    std::map<std::string, Seconds> ends;  // by pool
    for (const Phase& phase : step) {
      auto [outcome, held] = simulate_phase(phase, options);
      pools.try_emplace(phase.pool, *phase.run).first->second.add(phase, std::move(held));
      Seconds& end = ends.try_emplace(phase.pool, result.time).first->second;
      outcome.begin = end;
      end += outcome.time;
      result.phases.push_back(std::move(outcome));
    }
    for (const auto& [pool, end] : ends) result.time = std::max(result.time, end);
  }
  for (const auto& [name, pool] : pools) {
    result.gpus += pool.gpus();
    result.pools.push_back(pool.fullest(name));
  }
  return result;
}

}  // namespace

Bytes PoolMemory::used() const {
  Bytes sum = caches + beside;
  for (const auto& [model, bytes] : weights) sum += bytes;
  return sum;
}

bool WorkflowOutcome::fits() const {
  return std::ranges::all_of(pools,
                             [](const PoolMemory& pool) { return pool.used() <= pool.memory; });
}

WorkflowOutcome simulate_workflow(const Workflow& workflow, const SimulateOptions& options) {
  try {
    return simulated(workflow, options);
  } catch (const InputError& error) {
    return {.name = workflow.name, .refused = error.what()};
  }
}

}  // namespace stratagem::study
