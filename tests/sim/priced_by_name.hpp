// Programs in virtual time where every task takes what its name says, wherever it runs.
#pragma once

#include <cstdint>
#include <string>

#include "sim/engine.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

/// Picoseconds, by a task's name alone.
inline Ticks duration(const std::string& name) {
  std::int64_t sum = 7;
  for (const char letter : name) sum = (sum * 31 + letter) % 997;
  return {sum + 1};
}

/// One iteration on GPUs that send a byte in a picosecond; every device is an actor.
inline Timeline played(const program::Program& program) {
  const auto devices = static_cast<int>(program.devices.size());
  const Folding folding = fold(program, instant_cluster(devices, {1e12}), ideal_network(), false);
  const Prices prices = price(
      program, [](const program::Task& task) { return Price{.device = duration(task.name)}; });
  return run(program, folding, prices, 1);
}

}  // namespace stratagem::sim
