// Pairs the sends of a communicator with its receives, by their order in an iteration.
#include "report/traces/messages.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"
#include "report/traces/collectives.hpp"

namespace stratagem::report {
namespace {

/// By communicator of a device: its messages of one iteration, in order.
using Passed = std::map<int, std::vector<DeviceCollective>>;

Passed passed(const program::Program& program, const sim::Timeline& timeline, int device) {
  Passed result;
  for (const DeviceCollective& one : collectives_of(program, timeline, device)) {
    if (one.collective.kind == cost::CollectiveKind::send) result[one.communicator].push_back(one);
  }
  for (auto& [communicator, messages] : result)
    std::ranges::stable_sort(messages, {}, &DeviceCollective::lag);
  return result;
}

}  // namespace

std::vector<Message> messages(const program::Program& program, const sim::Timeline& timeline) {
  std::vector<Message> all;
  std::map<int, Passed> by_device;
  const auto of = [&](int device) -> const Passed& {
    const auto [known, is_new] = by_device.try_emplace(device);
    if (is_new) known->second = passed(program, timeline, device);
    return known->second;
  };
  for (std::size_t actor = 0; actor < timeline.actors.size(); ++actor) {
    const int sender = timeline.actors[actor].device;
    for (const auto& [communicator, sent] : of(sender)) {
      const std::vector<int>& ranks = program.communicators[communicator].ranks;
      if (ranks.front() != sender) continue;
      const auto received = of(ranks.back()).find(communicator);
      expects(received != of(ranks.back()).end() && received->second.size() == sent.size(),
              "what is sent is received");
      for (std::size_t i = 0; i < sent.size(); ++i) {
        if (sent[i].lag != received->second[i].lag) continue;
        all.push_back({.sent = {static_cast<int>(actor), sent[i].task},
                       .received = {timeline.actor_of[ranks.back()], received->second[i].task}});
      }
    }
  }
  return all;
}

}  // namespace stratagem::report
