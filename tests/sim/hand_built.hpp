// Programs, prices and foldings made by hand: picoseconds of work, and networks of one link.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "sim/engine.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"

namespace stratagem::sim {

using cost::CollectiveKind;
using program::Category;
using program::Stream;

/// A task and what it costs, in picoseconds. It is launched after the whole of its host time.
struct Step {
  program::Task task;
  std::int64_t device = 0;
  std::int64_t host = 0;
};

inline Step kernel(std::int64_t device, std::int64_t host = 0, std::vector<int> waits = {},
                   Stream stream = Stream::compute) {
  Step step{.task = {}, .device = device, .host = host};
  step.task.work = cost::Kernel{};
  step.task.stream = stream;
  step.task.waits = std::move(waits);
  return step;
}

inline Step collective(Bytes payload, std::vector<int> waits = {},
                       Stream stream = Stream::communication, int group = 0,
                       CollectiveKind kind = CollectiveKind::all_reduce) {
  Step step = kernel(0, 0, std::move(waits), stream);
  step.task.work = program::Collective{.kind = kind, .group = group, .payload = payload};
  return step;
}

/// A program and its prices.
struct HandBuilt {
  program::Program program;
  Prices prices;

  /// One block, called once per iteration by a sequence of its own.
  void add_sequence(const std::vector<Step>& steps, std::vector<program::Slot> slots = {}) {
    const auto block = static_cast<int>(program.blocks.size());
    program.blocks.push_back({.name = "", .slots = std::move(slots), .tasks = {}});
    prices.emplace_back();
    for (const Step& step : steps) {
      program.blocks.back().tasks.push_back(step.task);
      prices.back().push_back({{step.device}, {step.host}, {step.host}});
    }
    program.sequences.push_back(
        {.calls = {{.block = block, .segment = -1, .cell = {}, .waits = {}}}, .residents = {}});
  }

  /// A device that belongs to the given communicators, by group.
  void add_device(int sequence, std::vector<int> groups = {}) {
    const auto device = static_cast<int>(program.devices.size());
    for (const int communicator : groups) {
      if (communicator < 0) continue;
      if (program.communicators.size() <= static_cast<std::size_t>(communicator)) {
        program.communicators.resize(communicator + 1);
      }
      program.communicators[communicator].ranks.push_back(device);
    }
    program.devices.push_back({.sequence = sequence, .groups = std::move(groups)});
  }
};

/// 1 byte per picosecond.
inline constexpr BytesPerSecond byte_per_picosecond{1e12};

/// Every device is an actor. All collectives of the given kinds of all communicators load one link
/// with one byte per byte, and have one latency.
inline Folding on_one_link(const program::Program& program,
                           const std::vector<CollectiveKind>& kinds = {CollectiveKind::all_reduce},
                           Ticks latency = {}, BytesPerSecond capacity = byte_per_picosecond) {
  Folding folding;
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    const program::Device& device = program.devices[d];
    folding.actors.push_back({.device = static_cast<int>(d),
                              .multiplicity = 1,
                              .sequence = device.sequence,
                              .communicator_classes = device.groups});
  }
  for (const program::Communicator& communicator : program.communicators) {
    folding.communicator_classes.push_back({.actors = communicator.ranks, .multiplicity = 1});
  }
  folding.capacities = {capacity};
  folding.link_uses.emplace_back();
  for (std::size_t communicator_class = 0; communicator_class < folding.communicator_classes.size();
       ++communicator_class) {
    for (const CollectiveKind kind : kinds) {
      const auto id = static_cast<int>(folding.flows.size());
      folding.flows.push_back({.kind = kind,
                               .communicator_class = static_cast<int>(communicator_class),
                               .flow_class = id,
                               .latency = latency,
                               .parts = {{.link = 0, .use = id, .count = 1}}});
      folding.link_uses[0].push_back({.flow = id, .load = 1, .count = 1});
      folding.weights.push_back(capacity);
    }
  }
  return folding;
}

/// Picoseconds of the tasks of an actor in one iteration.
inline std::vector<std::int64_t> begins(const Timeline& timeline, int actor, int iteration) {
  std::vector<std::int64_t> result;
  for (const Instant when : timeline.times[actor].begins[iteration]) {
    result.push_back(when.picoseconds);
  }
  return result;
}
inline std::vector<std::int64_t> ends(const Timeline& timeline, int actor, int iteration) {
  std::vector<std::int64_t> result;
  for (const Instant when : timeline.times[actor].ends[iteration]) {
    result.push_back(when.picoseconds);
  }
  return result;
}

}  // namespace stratagem::sim
