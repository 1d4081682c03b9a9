// List scheduling of two chains in program order.
#include "lowering/sequences/interleaving.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {
namespace {

using program::Launch;
using program::Stream;
using program::Task;
using program::TaskOfCall;

/// A chain as far as it is launched.
class Launching {
 public:
  Launching(const SequenceDraft& draft, const CallChain& calls) : draft_(draft) {
    for (const int call : calls) {
      const std::size_t count = draft.tasks_of(call).size();
      for (std::size_t task = 0; task < count; ++task)
        tasks_.push_back({call, static_cast<int>(task)});
    }
  }

  [[nodiscard]] bool done() const { return next_ == tasks_.size(); }
  [[nodiscard]] const TaskOfCall& next() const { return tasks_[next_]; }

  /// Is the next task a computation that waits for an all-to-all which nothing has run beside yet?
  [[nodiscard]] bool needs_time() const {
    const Task& task = draft_.tasks_of(next().call)[next().task];
    if (task.stream != Stream::compute) return false;
    const auto waits_here = [&](int wait) { return fresh_.contains({next().call, wait}); };
    if (std::ranges::any_of(task.waits, waits_here)) return true;
    return std::ranges::any_of(draft_.calls()[next().call].waits, [&](const program::Wait& wait) {
      return wait.task == next().task && fresh_.contains({wait.of_call, wait.of_task});
    });
  }

  TaskOfCall launch() {
    const TaskOfCall task = tasks_[next_++];
    if (draft_.tasks_of(task.call)[task.task].stream == Stream::exchange)
      fresh_.emplace(task.call, task.task);
    return task;
  }

  /// Something else runs beside the all-to-alls so far.
  void give_time() { fresh_.clear(); }

  /// Computations before the first that needs time.
  [[nodiscard]] int computations_first() const {
    Launching ahead = *this;
    int count = 0;
    for (; !ahead.done() && !ahead.needs_time(); ahead.launch()) {
      if (draft_.tasks_of(ahead.next().call)[ahead.next().task].stream == Stream::compute) ++count;
    }
    return count;
  }

 private:
  const SequenceDraft& draft_;
  std::vector<TaskOfCall> tasks_;
  std::size_t next_ = 0;
  std::set<std::pair<int, int>> fresh_;  ///< all-to-alls, by call and task
};

class Interleaving {
 public:
  Interleaving(const SequenceDraft& draft, const std::array<CallChain, 2>& chains)
      : draft_(draft), chains_{Launching(draft, chains[0]), Launching(draft, chains[1])} {
    first_ = static_cast<int>(draft.calls().size());
    for (const CallChain& chain : chains) {
      if (!chain.empty()) first_ = std::min(first_, chain.front());
    }
    launched_.resize(draft.calls().size() - first_, 0);
  }

  std::vector<Launch> launches() {
    std::size_t one = chains_[1].computations_first() < chains_[0].computations_first() ? 1 : 0;
    while (!chains_[0].done() || !chains_[1].done()) {
      const bool possible = can_launch(chains_[one]);
      if (!possible || (chains_[one].needs_time() && can_launch(chains_[1 - one]))) {
        chains_[one].give_time();
        one = 1 - one;
        expects(possible || can_launch(chains_[one]), "two chains do not wait for each other");
      }
      launch(chains_[one].launch());
    }
    return std::move(pieces_);
  }

 private:
  /// Is all launched that the next task of a chain waits for?
  [[nodiscard]] bool can_launch(const Launching& chain) const {
    if (chain.done()) return false;
    const TaskOfCall& next = chain.next();
    return std::ranges::all_of(draft_.calls()[next.call].waits, [&](const program::Wait& wait) {
      return wait.task != next.task || wait.of_call < first_ ||
             launched_[wait.of_call - first_] > wait.of_task;
    });
  }

  void launch(const TaskOfCall& task) {
    ++launched_[task.call - first_];
    const bool continues = !pieces_.empty() && pieces_.back().call == task.call;
    if (!continues) pieces_.push_back({task.call, task.task, task.task});
    pieces_.back().end = task.task + 1;
  }

  const SequenceDraft& draft_;
  std::array<Launching, 2> chains_;
  int first_ = 0;              ///< of the calls of both
  std::vector<int> launched_;  ///< how many tasks, by call from the first on
  std::vector<Launch> pieces_;
};

}  // namespace

bool alternate(const SequenceContext& context, const placement::Cell& one,
               const placement::Cell& other) {
  const auto lends = [](const strategies::Keep& rule) {
    return rule.where == strategies::Keep::Where::stage && !rule.segments.empty();
  };
  return !context.stages.irregular(one.stage) && !context.stages.irregular(other.stage) &&
         std::ranges::none_of(context.residency.rules(), lends) &&
         std::pair(one.micro_batch, one.slice) != std::pair(other.micro_batch, other.slice);
}

std::vector<Launch> interleaved(const SequenceDraft& draft,
                                const std::array<CallChain, 2>& chains) {
  return Interleaving(draft, chains).launches();
}

}  // namespace stratagem::lowering
