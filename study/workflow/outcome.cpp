// Simulates phases, and adds their times by step and what they hold by pool.
#include "study/workflow/outcome.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "study/workflow/held_weights.hpp"
#include "study/workflow/transfer.hpp"

namespace stratagem::study {
namespace {

/// A phase, simulated alone, and what it holds.
struct Played {
  const Phase* phase;
  PhaseOutcome outcome;
  Held held;
  bool copies = false;  ///< the weights are its own while it runs
};

bool trains_in(const Played& one) { return cost::trains(one.phase->run->training.optimizer); }

/// The larger of what two passes use, device by device.
Held held_by(const Generation& generation) {
  Held held = held_by(generation.ends.front().run, generation.ends.front().simulated);
  const Held last = held_by(generation.ends.back().run, generation.ends.back().simulated);
  for (std::size_t device = 0; device < held.used.size(); ++device)
    held.used[device] = std::max(held.used[device], last.used[device]);
  return held;
}

/// An error of a pass names keys that the user did not write: it is the phase's.
Generation generated(const Phase& phase, const SimulateOptions& options) {
  try {
    return generate(*phase.run, phase.answer_tokens, options);
  } catch (const InputError& error) {
    phase.said.at("answer_tokens")
        .fail("a run whose passes can have caches (" + error.path + ": expected " + error.expected +
                  ")",
              error.found);
  }
}

Played play(const Phase& phase, const SimulateOptions& options) {
  Played played{.phase = &phase,
                .outcome = {.name = phase.name,
                            .run = phase.run->name,
                            .pool = phase.pool,
                            .repeat = phase.repeat},
                .held = {}};
  if (phase.answer_tokens > 0) {
    Generation generation = generated(phase, options);
    played.outcome.time = phase.repeat * generation.time;
    played.held = held_by(generation);
    generation.ends.clear();
    played.outcome.generation = std::move(generation);
    return played;
  }
  const Simulated simulated = simulate(*phase.run, options);
  const sim::Metrics& metrics = *simulated.outcome.metrics;
  played.outcome.time = metrics.makespan + (phase.repeat - 1) * metrics.iteration_time;
  played.held = held_by(*phase.run, simulated);
  return played;
}

/// Brings new weights to phases that do not train them where they lie.
class Weights {
 public:
  explicit Weights(std::vector<Played>& all) : all_(all) {}

  void bring() {
    for (Played& one : all_) {
      const Played* trainer = first(one, [](const Played& other) { return trains_in(other); });
      const Played& home = home_of(one, trainer);
      check_model(one, trainer == nullptr ? home : *trainer);
      const std::string parameter = divided_differently(one.held, home.held);
      one.copies = !parameter.empty();
      if (one.copies && (trainer == nullptr || trains_in(one))) refuse(one, home, parameter);
      const bool elsewhere = trainer != nullptr && trainer->phase->pool != one.phase->pool;
      if (elsewhere && trains_in(one)) {
        one.phase->said.fail("\"weights\" of another name: phase " + trainer->phase->name +
                                 " trains " + one.phase->weights + " on another pool",
                             one.phase->weights);
      }
      if (trainer == nullptr || !(one.copies || (elsewhere && &one == &home))) continue;
      one.outcome.weights = transfer_time({*trainer->phase->run, trainer->held},
                                          {*one.phase->run, one.held}, !elsewhere);
      one.outcome.time += one.outcome.weights;
    }
  }

 private:
  /// The first phase of the same weights that a condition holds for.
  template <typename Accepts>
  [[nodiscard]] const Played* first(const Played& of, const Accepts& accepts) const {
    const auto found = std::ranges::find_if(all_, [&](const Played& other) {
      return other.phase->weights == of.phase->weights && accepts(other);
    });
    return found == all_.end() ? nullptr : &*found;
  }

  /// Of the phase's pool: the one that trains the weights, else the first one.
  [[nodiscard]] const Played& home_of(const Played& of, const Played* trainer) const {
    if (trainer != nullptr && trainer->phase->pool == of.phase->pool) return *trainer;
    return *first(of, [&](const Played& other) { return other.phase->pool == of.phase->pool; });
  }

  static void check_model(const Played& one, const Played& other) {
    const std::string parameter = different_parameter(one.held, other.held);
    if (parameter.empty()) return;
    one.phase->said.fail("\"weights\" of another name, since phase " + other.phase->name +
                             " has another model (" + parameter + ")",
                         one.phase->weights);
  }

  [[noreturn]] static void refuse(const Played& one, const Played& home,
                                  const std::string& parameter) {
    one.phase->said.fail("\"weights\" of another name, since phase " + home.phase->name +
                             " divides those of " + one.phase->weights + " differently (" +
                             parameter + ")",
                         one.phase->weights);
  }

  std::vector<Played>& all_;
};

/// What the phases of one pool hold.
class Pool {
 public:
  explicit Pool(const Run& run) : gpus_(run.gpus), memory_(run.profile.memory.size.value) {}

  void add(const Played& one) { phases_.push_back(&one); }
  [[nodiscard]] int gpus() const { return gpus_; }

  /// The fullest GPU in a phase.
  [[nodiscard]] PoolMemory in(const Played& phase) const {
    PoolMemory most;
    for (int device = 0; device < gpus_; ++device) {
      PoolMemory one = on(device, phase);
      if (one.used() > most.used()) most = std::move(one);
    }
    return most;
  }

  [[nodiscard]] PoolMemory fullest() const {
    PoolMemory most;
    for (const Played* phase : phases_) {
      PoolMemory one = in(*phase);
      if (one.used() > most.used()) most = std::move(one);
    }
    return most;
  }

 private:
  [[nodiscard]] PoolMemory on(int device, const Played& phase) const {
    PoolMemory memory{.pool = phase.phase->pool,
                      .gpus = gpus_,
                      .device = device,
                      .phase = phase.phase->name,
                      .memory = memory_};
    for (const Played* other : phases_) {
      if (other->copies) continue;
      Bytes& kept = memory.weights[other->phase->weights];
      kept = std::max(kept, other->held.kept[device]);
    }
    const Bytes own = phase.copies ? Bytes{} : phase.held.kept[device];
    memory.caches = phase.held.caches[device];
    // What the replay of memory frees at an iteration's end may be kept all the same.
    memory.beside = std::max(Bytes{}, phase.held.used[device] - own - memory.caches);
    return memory;
  }

  int gpus_;
  Bytes memory_;
  std::vector<const Played*> phases_;
};

/// The fullest GPU of each pool; notes in each phase what its own needs.
std::vector<PoolMemory> pools_of(std::vector<Played>& all) {
  std::map<std::string, Pool> pools;
  for (const Played& one : all)
    pools.try_emplace(one.phase->pool, *one.phase->run).first->second.add(one);
  for (Played& one : all) one.outcome.used = pools.at(one.phase->pool).in(one).used();
  std::vector<PoolMemory> result;
  for (const auto& [name, pool] : pools) result.push_back(pool.fullest());
  return result;
}

WorkflowOutcome simulated(const Workflow& workflow, const SimulateOptions& options) {
  std::vector<Played> all;
  for (const std::vector<Phase>& step : workflow.steps) {
    for (const Phase& phase : step) {
      if (phase.run->refused) phase.said.at("run").fail("a run that is not refused itself");
      all.push_back(play(phase, options));
    }
  }
  Weights(all).bring();
  WorkflowOutcome result{.name = workflow.name, .pools = pools_of(all)};
  auto played = all.begin();
  for (const std::vector<Phase>& step : workflow.steps) {
    std::map<std::string, Seconds> ends;  // by pool
    for (std::size_t i = 0; i < step.size(); ++i, ++played) {
      Seconds& end = ends.try_emplace(played->phase->pool, result.time).first->second;
      played->outcome.begin = end;
      end += played->outcome.time;
      result.phases.push_back(std::move(played->outcome));
    }
    for (const auto& [pool, end] : ends) result.time = std::max(result.time, end);
  }
  for (const PoolMemory& pool : result.pools) result.gpus += pool.gpus;
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
