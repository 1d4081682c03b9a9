// Adds what models keep to what each phase uses, device by device.
#include "study/workflow/pool_memory.hpp"

#include <algorithm>
#include <utility>

namespace stratagem::study {
namespace {

class Pool {
 public:
  explicit Pool(const Run& run) : gpus_(run.gpus), memory_(run.profile.memory.size.value) {}

  void add(const SimulatedPhase& one) { phases_.push_back(&one); }

  /// The fullest GPU in a phase.
  [[nodiscard]] PoolMemory in(const SimulatedPhase& phase) const {
    PoolMemory most;
    for (int device = 0; device < gpus_; ++device) {
      PoolMemory one = on(device, phase);
      if (one.used() > most.used()) most = std::move(one);
    }
    return most;
  }

  [[nodiscard]] PoolMemory fullest() const {
    PoolMemory most;
    for (const SimulatedPhase* phase : phases_) {
      PoolMemory one = in(*phase);
      if (one.used() > most.used()) most = std::move(one);
    }
    return most;
  }

 private:
  [[nodiscard]] PoolMemory on(int device, const SimulatedPhase& phase) const {
    PoolMemory memory{.pool = phase.phase->pool,
                      .gpus = gpus_,
                      .device = device,
                      .phase = phase.phase->name,
                      .memory = memory_};
    for (const SimulatedPhase* other : phases_) {
      if (other->copies) continue;
      Bytes& kept = memory.states[other->phase->weights];
      kept = std::max(kept, other->states.kept[device]);
    }
    const Bytes own = phase.states.kept[device];
    if (phase.copies) memory.copy = own;
    memory.caches = phase.states.caches[device];
    // What the replay of memory frees at an iteration's end may be kept all the same.
    memory.other = std::max(Bytes{}, phase.states.used[device] - own - memory.caches);
    return memory;
  }

  int gpus_;
  Bytes memory_;
  std::vector<const SimulatedPhase*> phases_;
};

}  // namespace

Bytes PoolMemory::used() const {
  Bytes sum = copy + caches + other;
  for (const auto& [model, bytes] : states) sum += bytes;
  return sum;
}

std::vector<PoolMemory> memory_of_pools(std::vector<SimulatedPhase>& phases) {
  std::map<std::string, Pool> pools;
  for (const SimulatedPhase& one : phases)
    pools.try_emplace(one.phase->pool, *one.phase->run).first->second.add(one);
  for (SimulatedPhase& one : phases) one.outcome.used = pools.at(one.phase->pool).in(one).used();
  std::vector<PoolMemory> result;
  for (const auto& [name, pool] : pools) result.push_back(pool.fullest());
  return result;
}

}  // namespace stratagem::study
