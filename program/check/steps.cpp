// Walks a sequence and remembers the last step of every queue.
#include "program/check/steps.hpp"

#include <algorithm>

namespace stratagem::program {
namespace {

class StepBuilder {
 public:
  StepBuilder(const Program& program, const Sequence& sequence, Grain grain, const Queues& queues)
      : program_(program), sequence_(sequence), grain_(grain), queues_(queues) {
    first_in_.assign(queues.count(), -1);
    last_in_.assign(queues.count(), -1);
    behind_.assign(queues.count(), -1);
    waited_for_.assign(stream_names.size(), false);
  }

  Steps build() {
    const std::vector<int> first = first_beside(sequence_);
    for (std::size_t c = 0; c < sequence_.calls.size(); ++c) {
      grain_ == Grain::calls ? add_call(static_cast<int>(c), first[c])
                             : add_tasks(static_cast<int>(c));
    }
    if (grain_ == Grain::tasks) enqueue_tasks();
    for (std::size_t queue = 0; queue < first_in_.size(); ++queue) {
      if (first_in_[queue] < 0) continue;
      steps_.wrapped.emplace_back(last_in_[queue], first_in_[queue]);
      if (host_ >= 0) steps_.wrapped.emplace_back(host_, first_in_[queue]);
    }
    if (host_ >= 0) steps_.wrapped.emplace_back(host_, first_of_host_);
    for (const auto& [queue, step] : of_round_before_) {
      if (last_in_[queue] >= 0) steps_.wrapped.emplace_back(last_in_[queue], step);
    }
    return std::move(steps_);
  }

 private:
  /// A step of its own, or of the first of the calls beside it.
  void add_call(int c, int first) {
    const Call call = sequence_.calls[c];
    const int step = first < c ? steps_.first[first] : add_step({.call = c, .task = 0});
    steps_.first.push_back(step);
    if (!call.host_waits.empty() || queues_.synchronises(call.block)) host_takes(step);
    for (const HostWait& wait : call.host_waits) wait_on_host(step, wait);
    for (const int queue : queues_.of_block(call.block)) enqueue(step, queue);
    for (const Wait& wait : call.waits) {
      if (steps_.first[wait.of_call] != step)
        steps_.waits.emplace_back(steps_.first[wait.of_call], step);
    }
  }

  void add_tasks(int c) {
    const Call call = sequence_.calls[c];
    const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
    const auto first = static_cast<int>(steps_.places.size());
    steps_.first.push_back(first);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const int step = add_step({.call = c, .task = static_cast<int>(t)});
      for (const int wait : tasks[t].waits) steps_.waits.emplace_back(first + wait, step);
    }
    for (const Wait& wait : call.waits)
      steps_.waits.emplace_back(steps_.first[wait.of_call] + wait.of_task, first + wait.task);
  }

  void enqueue_tasks() {
    int synchronised = -1;  // the task before
    each_launch(program_, sequence_, [&](const Launch& launch) {
      const Call call = sequence_.calls[launch.call];
      const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
      for (int task = launch.first; task < launch.end; ++task) {
        const int step = steps_.first[launch.call] + task;
        const bool waits = std::ranges::any_of(
            call.host_waits, [&](const HostWait& wait) { return is_before(wait, task); });
        if (waits || synchronised >= 0) {
          const int host = add_step({.call = launch.call, .task = task});
          host_takes(host);
          for (const HostWait& wait : call.host_waits) {
            if (is_before(wait, task)) wait_on_host(host, wait);
          }
          if (synchronised >= 0) steps_.waits.emplace_back(synchronised, host);
        }
        for (const int queue : queues_.of_task(call.block, task)) enqueue(step, queue);
        synchronised = tasks[task].synchronizations > 0 ? step : -1;
      }
    });
  }

  /// The next step of the host's queue.
  void host_takes(int step) {
    if (host_ == step) return;
    if (host_ < 0) first_of_host_ = step;
    if (host_ >= 0) steps_.queued.emplace_back(host_, step);
    host_ = step;
  }

  /// A step of the host comes after what it waits for.
  void wait_on_host(int step, const HostWait& wait) {
    if (wait.of_call >= 0) {
      const int task = grain_ == Grain::tasks ? wait.of_task : 0;
      const int of = steps_.first[wait.of_call] + task;
      if (of != step) steps_.waits.emplace_back(of, step);
      return;
    }
    for (std::size_t queue = 0; queue < stream_names.size(); ++queue) {
      if (!waits_for_stream(wait.of_task, static_cast<Stream>(queue))) continue;
      const int last = last_in_[queue];
      if (last >= 0 && last != step) steps_.queued.emplace_back(last, step);
      if (last < 0 && !waited_for_[queue])
        of_round_before_.emplace_back(static_cast<int>(queue), step);
      waited_for_[queue] = true;
    }
  }

  int add_step(const TaskOfCall& place) {
    steps_.places.push_back(place);
    return static_cast<int>(steps_.places.size()) - 1;
  }

  void enqueue(int step, int queue) {
    if (last_in_[queue] == step) return;
    if (first_in_[queue] < 0) first_in_[queue] = step;
    if (last_in_[queue] >= 0) steps_.queued.emplace_back(last_in_[queue], step);
    if (host_ >= 0 && host_ != step && behind_[queue] != host_)
      steps_.queued.emplace_back(host_, step);
    behind_[queue] = host_;
    last_in_[queue] = step;
  }

  const Program& program_;
  const Sequence& sequence_;
  Grain grain_;
  const Queues& queues_;
  Steps steps_;
  std::vector<int> first_in_;  ///< by queue
  std::vector<int> last_in_;
  int first_of_host_ = -1;
  int host_ = -1;                 ///< the last step of the host
  std::vector<int> behind_;       ///< by queue: the step of the host that its last step follows
  std::vector<bool> waited_for_;  ///< by stream: by the host, in this round
  /// Streams that the host waits for before anything is launched there, and its steps.
  std::vector<std::pair<int, int>> of_round_before_;
};

}  // namespace

Queues::Queues(const Program& program, int groups) : groups_(groups) {
  for (const Block& block : program.blocks) {
    std::vector<int>& queues = of_block_.emplace_back();
    std::vector<std::vector<int>>& by_task = of_task_.emplace_back();
    synchronises_.push_back(std::ranges::any_of(
        block.tasks, [](int n) { return n > 0; }, &Task::synchronizations));
    for (const Task& task : block.tasks) {
      for (const int queue : by_task.emplace_back(of(task))) {
        if (std::ranges::find(queues, queue) == queues.end()) queues.push_back(queue);
      }
    }
  }
}

int Queues::count() const { return static_cast<int>(stream_names.size()) + groups_; }

std::vector<int> Queues::of(const Task& task) const {
  std::vector<int> queues;
  if (!transfers(task.stream)) queues.push_back(static_cast<int>(task.stream));
  if (const auto* collective = std::get_if<Collective>(&task.work))
    queues.push_back(static_cast<int>(stream_names.size()) + collective->group);
  return queues;
}

Steps steps_of(const Program& program, const Sequence& sequence, Grain grain,
               const Queues& queues) {
  return StepBuilder(program, sequence, grain, queues).build();
}

}  // namespace stratagem::program
