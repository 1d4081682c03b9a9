// What a program communicates: bytes by device, and what crosses between unequal grids.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "tests/sim/expected_volume.hpp"

namespace stratagem::sim {

/// Calls of a sequence with what they run: visit(block, task).
template <typename Visit>
void each_task(const program::Program& program, int sequence, const Visit& visit) {
  for (const program::Call& call : program.sequences[sequence].calls) {
    const program::Block& block = program.blocks[call.block];
    for (const program::Task& task : block.tasks) visit(block, task);
  }
}

/// Collectives of a device: visit(block, task, collective, ranks).
template <typename Visit>
void each_collective(const program::Program& program, int device, const Visit& visit) {
  const program::Device& here = program.devices[device];
  each_task(program, here.sequence, [&](const program::Block& block, const auto& task) {
    const auto* collective = std::get_if<program::Collective>(&task.work);
    if (collective == nullptr) return;
    const int communicator = here.groups[collective->group];
    const auto ranks = static_cast<double>(program.communicators[communicator].ranks.size());
    visit(block, task, *collective, ranks);
  });
}

/// Does a block bring a tensor from a grid to another?
inline bool crosses(const program::Block& block) { return block.name.starts_with("move "); }

inline bool sends(program::Stream stream) {
  return stream == program::Stream::send_forward || stream == program::Stream::send_backward;
}

/// Bytes that one rank of n sends, and receives, in a collective; of a message those of its source.
inline double moved(const program::Collective& collective, double n) {
  const double payload = collective.payload.value;
  if (collective.kind == cost::CollectiveKind::send) return payload;
  if (collective.kind == cost::CollectiveKind::broadcast) return (n - 1) * payload;
  const double share = (n - 1) / n * payload;
  return collective.kind == cost::CollectiveKind::all_reduce ? 2 * share : share;
}

/// Does the next computation wait for collectives of a stream?
inline bool awaited(program::Stream stream) {
  return stream == program::Stream::communication || stream == program::Stream::exchange;
}

inline Volumes volumes_on(const program::Program& program, int device) {
  using program::Stream;
  Volumes volumes;
  each_collective(program, device,
                  [&](const auto& block, const auto& task, const auto& collective, double n) {
                    if (crosses(block)) return;
                    const double bytes = moved(collective, n);
                    if (awaited(task.stream)) volumes.within += bytes;
                    if (task.stream == Stream::gradient_communication) volumes.gradients += bytes;
                    if (sends(task.stream)) volumes.sent += bytes;
                  });
  return volumes;
}

/// Of all redistributions of an iteration together, by the definition of lowering::volume in bytes.
inline std::map<cost::CollectiveKind, double> redistribution_volume(
    const program::Program& program) {
  using program::Stream;
  std::map<cost::CollectiveKind, double> volumes;
  for (int device = 0; device < static_cast<int>(program.devices.size()); ++device) {
    each_collective(program, device,
                    [&](const auto& block, const auto& task, const auto& collective, double n) {
                      if (!crosses(block)) return;
                      if (awaited(task.stream))
                        volumes[collective.kind] += moved(collective, n) / n;
                      if (sends(task.stream)) volumes[collective.kind] += moved(collective, n);
                    });
  }
  return volumes;
}

}  // namespace stratagem::sim
