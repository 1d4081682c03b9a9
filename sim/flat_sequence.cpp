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
void number_collectives(FlatSequence& flat, int most) {
  for (int lag = 0; lag <= most; ++lag) {
    for (std::size_t i = 0; i < flat.tasks.size(); ++i) {
      FlatPrice& price = flat.prices[flat.tasks.place(i)];
      if (price.collective == nullptr || price.lag != lag) continue;
      const auto group = static_cast<std::size_t>(price.collective->group);
      if (flat.collectives.size() <= group) flat.collectives.resize(group + 1, 0);
      const int number = flat.collectives[group]++, turn = flat.tasks.turn(i);
      if (turn == 0) price.ordinal = number;
      if (turn == 1) price.later_ordinal = number - price.ordinal;
    }
  }
}

Queue queue_of(const program::Task& task, bool serial) {
  if (!program::transfers(task.stream))
    return {serial ? program::Stream::compute : task.stream, -1};
  return {task.stream, std::get<program::Collective>(task.work).group};
}

/// The work of a task without its idle time, spread over both. A product that spares
/// multiprocessors for a collective loses no others.
int slowdown_of(const program::Task& task, const Price& price, int slowdown) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  if (slowdown == 0 || kernel == nullptr || cost::concerns_host(kernel->kind) ||
      kernel->piece.spared > 0 || price.device.count <= 0)
    return 0;
  const double share = static_cast<double>(price.device.count - price.idle.count) /
                       static_cast<double>(price.device.count);
  return static_cast<int>(std::llround(slowdown * share));
}

/// A CUDA graph is one launch.
int places_in_queue(const cost::Kernel& kernel) {
  if (kernel.by == cost::LaunchedBy::graph) return 1;
  return kernel.by == cost::LaunchedBy::replay ? 0 : kernel.launches;
}

/// Puts every task into the queue of its stream.
void fill_queues(FlatSequence& flat, const program::Program& program, bool serial) {
  std::map<Queue, int> numbers;
  for (FlatTask& one : flat.tasks.stored()) {
    numbers.emplace(queue_of(program.blocks[one.block].tasks[one.task], serial), 0);
  }
  for (auto& [queue, number] : numbers) {
    number = static_cast<int>(flat.queues.size());
    flat.queues.push_back(queue);
  }
  for (FlatTask& one : flat.tasks.stored())
    one.queue = numbers.at(queue_of(program.blocks[one.block].tasks[one.task], serial));
  flat.in_queue.resize(flat.queues.size());
  for (std::size_t i = 0; i < flat.tasks.size(); ++i)
    flat.in_queue[flat.tasks.body(i).queue].push_back(static_cast<int>(i));
}

/// By what a wait of the host says (program::HostWait::of_task) + 1: the queues it is for. A serial
/// rank has one, which any such wait is for.
void list_host_queues(FlatSequence& flat, bool serial) {
  for (int number = -1; number < static_cast<int>(program::stream_names.size()); ++number) {
    std::vector<int>& list = flat.host_queues.emplace_back();
    for (std::size_t q = 0; q < flat.queues.size(); ++q) {
      const program::Stream stream = flat.queues[q].stream;
      const bool only = serial && !program::transfers(stream);
      if (only || program::waits_for_stream(number, stream)) list.push_back(static_cast<int>(q));
    }
  }
}

std::vector<FlatLoop> loops_of(const program::Program& program, const program::Calls& calls) {
  std::vector<FlatLoop> loops;
  int before = 0;  // tasks
  const auto width = [&](int first, int end) {
    int tasks = 0;
    for (int c = first; c < end; ++c)
      tasks += static_cast<int>(program.blocks[calls.stored()[c].block].tasks.size());
    return tasks;
  };
  int next = 0;
  for (const program::Loop& loop : calls.loops()) {
    before += width(next, loop.first);
    next = loop.first + loop.calls;
    loops.push_back({before, width(loop.first, next), loop.turns});
    before = loops.back().end();
  }
  return loops;
}

FlatHostWait host_wait(const program::HostWait& wait, int call) {
  if (wait.of_call < 0) return {.list = 1 + wait.of_task};
  return {.of = {call - wait.of_call, wait.of_task}};
}

/// Adds the price of a stored task of a call, and what it and the host wait for.
void add_price(FlatSequence& flat, const FlatTask& one, const program::Call& call,
               const program::Task& task, const Price& price, const Machine& machine) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  const bool queued = kernel != nullptr && program::runs_on_device(task.stream);
  const Ticks of_pass = call.begins_pass == one.task ? machine.pass : Ticks{};
  flat.prices.push_back({.device = price.device,
                         .first_launch = price.first_launch + of_pass,
                         .host = price.host + of_pass,
                         .last_kernel = price.last_kernel,
                         .launches = queued ? places_in_queue(*kernel) : 0,
                         .first_wait = static_cast<int>(flat.waits.size()),
                         .first_host_wait = static_cast<int>(flat.host_waits.size()),
                         .slowdown = slowdown_of(task, price, machine.slowdown),
                         .collective = std::get_if<program::Collective>(&task.work),
                         .lag = call.lag,
                         .synchronises = task.synchronizations > 0});
  for (const int wait : task.waits) flat.waits.push_back({0, wait});
  for (const program::Wait& wait : call.waits) {
    if (wait.task == one.task) flat.waits.push_back({one.call - wait.of_call, wait.of_task});
  }
  for (const program::HostWait& wait : program::host_waits_before(call, one.task))
    flat.host_waits.push_back(host_wait(wait, one.call));
}

}  // namespace

FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, const Machine& machine) {
  FlatSequence flat;
  flat.tasks = {program, sequence};
  flat.loops = loops_of(program, sequence.calls);
  flat.prices.reserve(flat.tasks.stored().size() + 1);
  for (const FlatTask& one : flat.tasks.stored())
    add_price(flat, one, sequence.calls[one.call], program.blocks[one.block].tasks[one.task],
              prices[one.block][one.task], machine);
  flat.prices.push_back({});
  flat.prices.back().first_wait = static_cast<int>(flat.waits.size());
  flat.prices.back().first_host_wait = static_cast<int>(flat.host_waits.size());
  number_collectives(flat, program.lag);
  fill_queues(flat, program, machine.serial);
  list_host_queues(flat, machine.serial);
  return flat;
}

}  // namespace stratagem::sim
