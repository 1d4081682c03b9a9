// Adds up what the devices of a server keep there, in the order of time.
#include "sim/host_memory.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"

namespace stratagem::sim {
namespace {

using program::Program;
using program::Residence;

/// How many devices of each actor a server has.
using Devices = std::map<int, int>;

std::map<Devices, HostMemory> distinct(const Timeline& timeline, int gpus_per_server) {
  std::map<Devices, HostMemory> servers;
  const auto devices = static_cast<int>(timeline.actor_of.size());
  for (int first = 0; first < devices; first += gpus_per_server) {
    Devices here;
    for (int d = first; d < std::min(devices, first + gpus_per_server); ++d)
      ++here[timeline.actor_of[d]];
    const auto [found, fresh] = servers.try_emplace(std::move(here));
    HostMemory& server = found->second;
    fresh ? server.server = first / gpus_per_server : ++server.count;
  }
  return servers;
}

/// Changes of all devices, each as many times as the server has such a device.
std::vector<MemoryChange> changes_of(const Program& program, const Timeline& timeline,
                                     const Devices& devices, Residence where,
                                     std::optional<int> rounds) {
  std::vector<MemoryChange> all;
  for (const auto& [actor, count] : devices) {
    for (MemoryChange change : memory_changes(program, timeline, actor, where, rounds)) {
      change.bytes = count * change.bytes;
      change.task = -1;
      all.push_back(change);
    }
  }
  std::ranges::stable_sort(
      all, {}, [](const MemoryChange& change) { return std::pair(change.when, change.begun); });
  return all;
}

bool holds_anything(const Program& program, Residence where) {
  const auto there = [&](const auto& buffer) { return buffer.place == where; };
  return std::ranges::any_of(program.blocks,
                             [&](const auto& b) { return std::ranges::any_of(b.slots, there); }) ||
         std::ranges::any_of(program.sequences, [&](const auto& sequence) {
           return std::ranges::any_of(sequence.residents, there);
         });
}

void fill(HostMemory& server, const Program& program, const Timeline& timeline,
          const Devices& devices, Residence where, std::optional<int> rounds) {
  ByCategory live{};
  for (const auto& [actor, count] : devices) {
    const ByCategory of = residents(program, timeline.actors[actor].sequence, where);
    for (std::size_t c = 0; c < live.size(); ++c) live[c] += count * of[c];
  }
  const std::vector<MemoryChange> changes = changes_of(program, timeline, devices, where, rounds);
  server.peak = highest_of(live, changes);
  server.peak.when = timeline.in_full(server.peak.when);
  server.steps.push_back({Instant{0}, live});
  for (const MemoryChange& change : changes) {
    live[static_cast<std::size_t>(change.category)] += change.bytes;
    server.steps.push_back({change.when, live});
  }
}

}  // namespace

std::vector<HostMemory> host_memory(const Program& program, const Timeline& timeline,
                                    int gpus_per_server, Residence where,
                                    std::optional<int> rounds) {
  expects(timeline.actor_of.size() == program.devices.size(), "every device has an actor");
  if (!holds_anything(program, where)) return {};
  std::vector<HostMemory> servers;
  for (auto& [devices, server] : distinct(timeline, gpus_per_server)) {
    fill(server, program, timeline, devices, where, rounds);
    if (server.peak.total == Bytes{}) continue;
    const auto alike = std::ranges::find(servers, server.peak, &HostMemory::peak);
    if (alike == servers.end()) {
      servers.push_back(std::move(server));
      continue;
    }
    alike->count += server.count;
    if (server.server < alike->server) alike->server = server.server;
  }
  std::ranges::sort(servers, {}, &HostMemory::server);
  return servers;
}

const HostMemory& fullest(const std::vector<HostMemory>& hosts) {
  expects(!hosts.empty(), "a server holds something");
  return *std::ranges::max_element(hosts, {},
                                   [](const HostMemory& host) { return host.peak.total; });
}

Bytes highest(const std::vector<HostMemory>& hosts) {
  Bytes most;
  for (const HostMemory& host : hosts) most = std::max(most, host.peak.total);
  return most;
}

}  // namespace stratagem::sim
