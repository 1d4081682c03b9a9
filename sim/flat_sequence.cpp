// Lays a sequence out once; every iteration of every actor reads it.
#include "sim/flat_sequence.hpp"

namespace stratagem::sim {
namespace {

/// Counts the collectives of a group up to this one.
int next_ordinal(std::vector<int>& collectives, int group) {
  const auto index = static_cast<std::size_t>(group);
  if (collectives.size() <= index) collectives.resize(index + 1, 0);
  return collectives[index]++;
}

}  // namespace

FlatSequence flatten(const strategies::Program& program, const strategies::Sequence& sequence,
                     const Prices& prices) {
  FlatSequence flat;
  const std::size_t count = strategies::task_count(program, sequence);
  flat.tasks.reserve(count);
  flat.prices.reserve(count + 1);
  std::vector<int> first_of_call;
  Ticks host;
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    const strategies::Call& call = sequence.calls[c];
    const strategies::Block& block = program.blocks[call.block];
    const auto first = static_cast<int>(flat.tasks.size());
    first_of_call.push_back(first);
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const strategies::Task& task = block.tasks[t];
      const Price& price = prices[call.block][t];
      const auto index = static_cast<int>(flat.tasks.size());
      flat.tasks.push_back({static_cast<int>(c), call.block, static_cast<int>(t), task.stream});
      flat.prices.push_back({.device = price.device,
                             .launched = {host.count + price.first_launch.count},
                             .finished = {host.count + price.host.count + price.last_kernel.count},
                             .synchronisations = static_cast<int>(flat.host_spans.size()),
                             .first_wait = static_cast<int>(flat.waits.size()),
                             .synchronises = task.synchronizations > 0,
                             .collective = std::get_if<strategies::Collective>(&task.work)});
      FlatPrice& flat_price = flat.prices.back();
      if (flat_price.collective != nullptr) {
        flat_price.ordinal = next_ordinal(flat.collectives, flat_price.collective->group);
      }
      for (const int wait : task.waits) flat.waits.push_back(first + wait);
      for (const strategies::Wait& wait : call.waits) {
        if (wait.task == static_cast<int>(t))
          flat.waits.push_back(first_of_call[wait.of_call] + wait.of_task);
      }
      flat.queues[static_cast<std::size_t>(task.stream)].push_back(index);
      host.count += price.host.count;
      if (task.synchronizations > 0) {
        flat.host_spans.push_back(host);
        host = {};
      }
    }
  }
  flat.host_spans.push_back(host);
  flat.prices.push_back({});
  flat.prices.back().first_wait = static_cast<int>(flat.waits.size());
  return flat;
}

}  // namespace stratagem::sim
