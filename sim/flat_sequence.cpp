// Lays a sequence out once; every iteration of every actor reads it.
#include "sim/flat_sequence.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace stratagem::sim {
namespace {

/// Numbers the collectives of every group in the order of their iteration: what runs in the same
/// round first, then what lags by one, and so on.
void number_collectives(FlatSequence& flat) {
  int most = 0;
  for (const FlatPrice& price : flat.prices) most = std::max(most, price.lag);
  for (int lag = 0; lag <= most; ++lag) {
    for (FlatPrice& price : flat.prices) {
      if (price.collective == nullptr || price.lag != lag) continue;
      const auto group = static_cast<std::size_t>(price.collective->group);
      if (flat.collectives.size() <= group) flat.collectives.resize(group + 1, 0);
      price.ordinal = flat.collectives[group]++;
    }
  }
}

Queue queue_of(const program::Task& task, bool serial) {
  if (!program::transfers(task.stream))
    return {serial ? program::Stream::compute : task.stream, -1};
  return {task.stream, std::get<program::Collective>(task.work).group};
}

/// The work of a task without its idle time, spread over both.
int slowdown_of(const program::Task& task, const Price& price, int slowdown) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  if (slowdown == 0 || kernel == nullptr || cost::concerns_host(kernel->kind) ||
      price.device.count <= 0)
    return 0;
  const double share = static_cast<double>(price.device.count - price.idle.count) /
                       static_cast<double>(price.device.count);
  return static_cast<int>(std::llround(slowdown * share));
}

/// Puts every task into the queue of its stream.
void fill_queues(FlatSequence& flat, const program::Program& program, bool serial) {
  std::map<Queue, std::vector<int>> queues;
  for (std::size_t i = 0; i < flat.tasks.size(); ++i) {
    const FlatTask& one = flat.tasks[i];
    queues[queue_of(program.blocks[one.block].tasks[one.task], serial)].push_back(
        static_cast<int>(i));
  }
  for (auto& [queue, tasks] : queues) {
    for (const int task : tasks) flat.tasks[task].queue = static_cast<int>(flat.queues.size());
    flat.queues.push_back(queue);
    flat.in_queue.push_back(std::move(tasks));
  }
}

}  // namespace

FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, int slowdown, bool serial) {
  FlatSequence flat;
  const std::size_t count = program::task_count(program, sequence);
  flat.tasks.reserve(count);
  flat.prices.reserve(count + 1);
  std::vector<int> first_of_call;
  Ticks host;
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    const program::Call& call = sequence.calls[c];
    const program::Block& block = program.blocks[call.block];
    const auto first = static_cast<int>(flat.tasks.size());
    first_of_call.push_back(first);
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const program::Task& task = block.tasks[t];
      const Price& price = prices[call.block][t];
      flat.tasks.push_back({static_cast<int>(c), call.block, static_cast<int>(t), task.stream});
      flat.prices.push_back({.device = price.device,
                             .launched = host + price.first_launch,
                             .finished = host + price.host + price.last_kernel,
                             .last_kernel = price.last_kernel,
                             .synchronisations = static_cast<int>(flat.host_spans.size()),
                             .first_wait = static_cast<int>(flat.waits.size()),
                             .synchronises = task.synchronizations > 0,
                             .slowdown = slowdown_of(task, price, slowdown),
                             .collective = std::get_if<program::Collective>(&task.work),
                             .lag = call.lag});
      for (const int wait : task.waits) flat.waits.push_back(first + wait);
      for (const program::Wait& wait : call.waits) {
        if (wait.task == static_cast<int>(t))
          flat.waits.push_back(first_of_call[wait.of_call] + wait.of_task);
      }
      host = host + price.host;
      if (task.synchronizations > 0) {
        flat.host_spans.push_back(host);
        host = {};
      }
    }
  }
  flat.host_spans.push_back(host);
  number_collectives(flat);
  fill_queues(flat, program, serial);
  flat.prices.push_back({});
  flat.prices.back().first_wait = static_cast<int>(flat.waits.size());
  return flat;
}

}  // namespace stratagem::sim
