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

/// Lays tasks out one by one.
class Flattening {
 public:
  Flattening(const program::Program& program, const program::Sequence& sequence,
             const Prices& prices, int slowdown)
      : program_(program), sequence_(sequence), prices_(prices), slowdown_(slowdown) {
    const std::size_t count = program::task_count(program, sequence);
    flat_.tasks.reserve(count);
    flat_.prices.reserve(count + 1);
  }

  FlatSequence lay_out() {
    number_tasks();
    program::each_launch(program_, sequence_, [&](const program::Launch& launch) {
      const program::Call call = sequence_.calls[launch.call];
      for (int task = launch.first; task < launch.end; ++task) add(launch.call, call, task);
    });
    return std::move(flat_);
  }

 private:
  void number_tasks() {
    int count = 0;
    for (std::size_t c = 0; c < sequence_.calls.size(); ++c) {
      first_of_call_.push_back(count);
      count += static_cast<int>(program_.blocks[sequence_.calls.body(c).block].tasks.size());
    }
    number_.resize(count);
    int number = 0;
    program::each_launch(program_, sequence_, [&](const program::Launch& launch) {
      for (int task = launch.first; task < launch.end; ++task)
        number_[first_of_call_[launch.call] + task] = number++;
      note_synchronisation(launch.call, launch.end - 1);  // at last that before the first task
    });
  }

  void add(int c, const program::Call& call, int t) {
    const program::Task& task = program_.blocks[call.block].tasks[t];
    const Price& price = prices_[call.block][t];
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    const bool queued = kernel != nullptr && program::runs_on_device(task.stream);
    flat_.tasks.push_back({c, call.block, t, task.stream});
    flat_.prices.push_back({.device = price.device,
                            .first_launch = price.first_launch,
                            .host = price.host,
                            .last_kernel = price.last_kernel,
                            .launches = queued ? kernel->launches : 0,
                            .first_wait = static_cast<int>(flat_.waits.size()),
                            .first_host_wait = static_cast<int>(flat_.host_waits.size()),
                            .slowdown = slowdown_of(task, price, slowdown_),
                            .collective = std::get_if<program::Collective>(&task.work),
                            .lag = call.lag});
    for (const int wait : task.waits) flat_.waits.push_back(number_[first_of_call_[c] + wait]);
    for (const program::Wait& wait : call.waits) {
      if (wait.task == t) flat_.waits.push_back(number(wait.of_call, wait.of_task));
    }
    if (synchronised_ >= 0) flat_.host_waits.push_back({.task = synchronised_});
    for (const program::HostWait& wait : program::host_waits_before(call, t)) {
      flat_.host_waits.push_back(wait.of_call >= 0
                                     ? FlatHostWait{.task = number(wait.of_call, wait.of_task)}
                                     : FlatHostWait{.queues = 1 + wait.of_task});
    }
    note_synchronisation(c, t);
  }

  [[nodiscard]] int number(int call, int task) const {
    return number_[first_of_call_[call] + task];
  }

  /// Before the next task the host waits for this one, if it synchronises.
  void note_synchronisation(int call, int task) {
    const program::Block& block = program_.blocks[sequence_.calls.body(call).block];
    synchronised_ = block.tasks[task].synchronizations > 0 ? number(call, task) : -1;
  }

  const program::Program& program_;
  const program::Sequence& sequence_;
  const Prices& prices_;
  int slowdown_;
  FlatSequence flat_;
  std::vector<int> first_of_call_;
  std::vector<int> number_;  ///< in the order of launches, by place in the order of calls
  int synchronised_ = -1;    ///< the task before, if it synchronises
};

}  // namespace

FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, int slowdown, bool serial) {
  FlatSequence flat = Flattening(program, sequence, prices, slowdown).lay_out();
  number_collectives(flat);
  fill_queues(flat, program, serial);
  list_host_queues(flat, serial);
  flat.prices.push_back({});
  flat.prices.back().first_wait = static_cast<int>(flat.waits.size());
  flat.prices.back().first_host_wait = static_cast<int>(flat.host_waits.size());
  return flat;
}

}  // namespace stratagem::sim
