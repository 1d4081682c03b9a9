// Figures derived from a timeline: time, rates, overlap and memory, by the definitions that reports
// use.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/memory_changes.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

using ByCategory = std::array<Bytes, program::category_names.size()>;
Bytes sum(const ByCategory& bytes);

/// Memory of one actor: its highest sum of live buffers, and what that was made of.
struct MemoryPeak {
  Bytes total;
  ByCategory by_category{};  ///< at that instant
  ByCategory highest{};      ///< of every category on its own, at whatever instant
  Instant when;
  int task = -1;  ///< that allocated the last of it, as MemoryChange::task; -1: residents alone
  friend bool operator==(const MemoryPeak&, const MemoryPeak&) = default;
};

/// The bytes that a device of a sequence holds all the time in one place.
ByCategory residents(const program::Program& program, int sequence, program::Residence place);

/// The peak, from the bytes at the start and the changes in the order of time.
MemoryPeak highest_of(ByCategory live, const std::vector<MemoryChange>& changes);

/// Live bytes of an actor, residents included: at the begin, and after each of its memory_changes
/// in the first `rounds` rounds.
struct MemoryStep {
  Instant when;
  ByCategory live{};
};

std::vector<MemoryStep> memory_steps(const program::Program& program, const Timeline& timeline,
                                     std::size_t actor, std::optional<int> rounds = {});
MemoryPeak memory_peak(const program::Program& program, const Timeline& timeline,
                       std::size_t actor);
/// The same of the actor's changes by task.
MemoryPeak memory_peak(const program::Program& program, const Timeline& timeline, std::size_t actor,
                       const std::vector<MemoryChange>& by_task);

struct Metrics {
  Seconds iteration_time;  ///< from the end of an iteration to the end of the measured one
  Seconds makespan;        ///< of the first iteration, from a cold start
  Flops hardware_flops;    ///< that kernels compute in one iteration on all devices
  /// Over a steady period that another one follows, mean over devices, as shares of it:
  double bubble_fraction = 0;     ///< neither computing nor communicating
  Seconds exposed_communication;  ///< communicating without computing
  MemoryPeak peak;                ///< of the device with the highest peak
  /// Payload over links per device and iteration, mean over devices, by kind.
  std::map<std::string, Bytes> communication;
  bool steady = false;
};

Metrics metrics(const program::Program& program, const Timeline& timeline);
/// With the peaks of all actors.
Metrics metrics(const program::Program& program, const Timeline& timeline,
                const std::vector<MemoryPeak>& peaks);

}  // namespace stratagem::sim
