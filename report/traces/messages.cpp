// Pairs the sends of a communicator with its receives, by their order.
#include "report/traces/messages.hpp"

#include <map>
#include <variant>

#include "base/input_error.hpp"

namespace stratagem::report {
namespace {

/// By communicator of a device: its messages, as numbers of tasks.
using Passed = std::map<int, std::vector<int>>;

Passed passed(const program::Program& program, const sim::Timeline& timeline, int device) {
  const program::Device& own = program.devices[device];
  const sim::FlatTasks& tasks = timeline.tasks[own.sequence];
  Passed result;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const program::Task& task = program.blocks[tasks[i].block].tasks[tasks[i].task];
    const auto* collective = std::get_if<program::Collective>(&task.work);
    if (collective == nullptr || collective->kind != cost::CollectiveKind::send) continue;
    result[own.groups[collective->group]].push_back(static_cast<int>(i));
  }
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
      const int receiver = ranks.back();
      const std::vector<int>& received = of(receiver).at(communicator);
      expects(sent.size() == received.size(), "what is sent is received");
      for (std::size_t i = 0; i < sent.size(); ++i)
        all.push_back({.sent = {static_cast<int>(actor), sent[i]},
                       .received = {timeline.actor_of[receiver], received[i]}});
    }
  }
  return all;
}

}  // namespace stratagem::report
