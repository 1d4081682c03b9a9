// Writes the parts, messages and additions of each ring in the order of their launches.
#include "lowering/blocks/ring.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "base/input_error.hpp"

namespace stratagem::lowering {
namespace {

using cost::Kernel;
using program::Block;
using program::Collective;
using program::Task;

void append(std::vector<int>& list, const std::vector<int>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

/// One of n kernels of attention, to the keys of one rank; `on_own`: under the mask of the whole.
Kernel part_of(Kernel kernel, int n, bool on_own) {
  kernel.flops = kernel.flops / n;
  kernel.n /= n;
  if (!kernel.seen.all && !on_own) {
    kernel.n /= 2;
    kernel.seen.all = true;
  }
  if (kernel.kind == cost::KernelKind::attention) kernel.piece.of = 2;  // on two streams
  return kernel;
}

class WritingRings {
 public:
  WritingRings(Block& block, const std::vector<Ring>& rings) : tasks_(block) {
    for (const Ring& ring : rings) {
      expects(!ring.kernels.empty(), "what is gathered for attention is read by it");
      for (const int task : ring.all()) ring_of_[task] = &ring;
    }
  }

  Moved run() {
    for (int t = 0; t < tasks_.count(); ++t) {
      const auto found = ring_of_.find(t);
      if (found == ring_of_.end()) {
        tasks_.keep(t);
      } else if (t == found->second->kernels.back()) {
        begin(*found->second);
        tasks_.kernel_of(t).kind == cost::KernelKind::attention ? forward() : backward();
      }
    }
    return tasks_.finish();
  }

 private:
  void begin(const Ring& ring) {
    ring_ = &ring;
    own_.clear(), whole_.clear(), sums_.clear();
    for (const int gather : ring.gathers) {
      own_.push_back(tasks_.old(gather).reads.front());
      whole_.push_back(tasks_.old(gather).writes.front());
    }
    for (const int scatter : ring.scatters) sums_.push_back(tasks_.old(scatter).reads.front());
    keys_ = bytes_of(whole_) / ring.ranks;
    gradients_ = bytes_of(sums_) / ring.ranks;
  }

  void forward() {
    const int n = ring_->ranks;
    const int kernel = ring_->kernels.front();
    const std::vector<int>& results = tasks_.old(kernel).writes;
    const int parts = add_slot(results.front(), "of all parts", n * bytes_of(results));
    std::vector<int> keys;  // of each rank, in the order in which they come
    for (int i = 0; i < n; ++i)
      keys.push_back(add_slot(whole_.front(), "of part " + std::to_string(i + 1), keys_));
    int arrived = join_keys(keys.front());
    for (int i = 0; i < n; ++i) {
      const int before = arrived;
      if (i + 1 < n) {
        arrived = add_message(i, n - 1, keys_, {keys[i], keys[i + 1]});
        if (i == 0) tasks_.newest().waits = {before};
      }
      add_part(kernel, i, i == 0, keys[i], parts);
      if (i > 0) tasks_.newest().waits = {before};
    }
    const Bytes result = slot_of(results.front()).bytes;
    const Bytes log_sums = bytes_of(results) - result;
    Task sum = task_of(name() + ", sum of the parts", (3 * n - 1) * result + (5 * n - 1) * log_sums,
                       2 * n);
    sum.reads = keys;
    sum.reads.push_back(parts);
    finish(std::move(sum));
  }

  void backward() {
    const int n = ring_->ranks;
    const std::vector<int> of_queries = own_gradients();
    const Bytes given = bytes_of(of_queries) + gradients_;
    const bool masked = !first_kernel().seen.all;
    const int parts =
        add_slot(tasks_.old(ring_->kernels.front()).writes.front(), "of a part", given);
    std::vector<int> buffers;
    for (const char* which : {"one", "two"})
      buffers.push_back(
          add_slot(whole_.front(), "passed on, " + std::string(which), keys_ + gradients_));
    int before = join_keys(buffers.front());
    for (int i = 0; i < n; ++i) {
      const int here = buffers[i % 2], next = buffers[(i + 1) % 2];
      const Bytes brought = (i + 1 < n ? keys_ : Bytes{}) + (i > 0 ? gradients_ : Bytes{});
      std::vector<int> arrived;
      if (brought > Bytes{}) {
        arrived = {add_message(i, n, brought, {here, next})};
        tasks_.newest().waits = {before};
      }
      for (const int kernel : ring_->kernels) add_part(kernel, i, i + 1 == n, here, parts);
      const Bytes added = masked && i + 1 < n ? given - gradients_ / 2 : given;
      Task sum = task_of(name() + ", sum of parts up to " + std::to_string(i + 1),
                         (i == 0 ? 2 : 3) * added, 1 + static_cast<int>(sums_.size()));
      sum.reads = {parts, next};
      sum.waits = arrived;
      sum.writes = of_queries;
      sum.writes.push_back(next);
      if (i + 1 == n) return finish(std::move(sum));
      before = tasks_.add(std::move(sum));
    }
  }

  /// Copies own keys and values side by side, to be sent as one message.
  int join_keys(int buffer) {
    Task copy = task_of(name() + ", keys and values", 2 * keys_, 1);
    if (first_kernel().by == cost::LaunchedBy::graph)
      std::get<Kernel>(copy.work).by = cost::LaunchedBy::graph;
    copy.reads = own_;
    copy.writes = {buffer};
    copy.waits = waits_of_inputs();
    const int task = tasks_.add(std::move(copy));
    for (const int slot : own_) tasks_.computes_own_share(task, slot);
    for (const auto* tasks : {&ring_->gathers, &ring_->kernels})
      for (const int one : *tasks) tasks_.stands_for(task, one);
    return task;
  }

  /// What gathers and kernels waited for on other streams than computation, but for each other.
  [[nodiscard]] std::vector<int> waits_of_inputs() const {
    std::vector<int> waits;
    for (const auto* tasks : {&ring_->gathers, &ring_->kernels}) {
      for (const int task : *tasks) append(waits, tasks_.old(task).waits);
    }
    for (const int slot : own_) {
      if (const int writer = tasks_.writer_of(slot, ring_->gathers.front()); writer >= 0)
        waits.push_back(writer);
    }
    std::erase_if(waits,
                  [&](int task) { return ring_of_.contains(task) && ring_of_.at(task) == ring_; });
    waits = tasks_.moved(std::move(waits));
    tasks_.drop_computation(waits);
    return waits;
  }

  /// A message out of one buffer into another.
  int add_message(int number, int of, Bytes payload, const std::pair<int, int>& buffers) {
    const Task& gather = tasks_.old(ring_->gathers.front());
    Task message{};
    message.name = name() + ", message " + std::to_string(number + 1) + " of " + std::to_string(of);
    message.work = Collective{.kind = cost::CollectiveKind::ring_messages,
                              .group = std::get<Collective>(gather.work).group,
                              .payload = payload};
    message.stream = gather.stream;
    message.recomputed = gather.recomputed;
    message.reads = {buffers.first};
    message.writes = {buffers.second};
    return tasks_.add(std::move(message));
  }

  /// Part `number` of a kernel, of the keys in a buffer; one on own keys has the mask of the whole.
  void add_part(int kernel, int number, bool on_own, int keys, int results) {
    const Task& whole = tasks_.old(kernel);
    Task part = whole;
    part.name += ", part " + std::to_string(number + 1) + " of " + std::to_string(ring_->ranks);
    Kernel kernel_here = kernel_of_part(whole, on_own);
    if (number > 0 || kernel_here.by == cost::LaunchedBy::graph)
      kernel_here.by = within_call(kernel_here.by);
    part.work = kernel_here;
    part.waits.clear();
    std::erase_if(part.reads, [&](int slot) { return is_in(whole_, slot); });
    part.reads.push_back(keys);
    part.writes = {results};
    part.operations.clear();
    part.synchronizations = 0;
    tasks_.add(std::move(part));
  }

  [[nodiscard]] Kernel kernel_of_part(const Task& whole, bool on_own) const {
    const int n = ring_->ranks;
    const auto& kernel = std::get<Kernel>(whole.work);
    Kernel part = part_of(kernel, n, on_own);
    // A backward kernel reads a third of what all three do (lowering/stack/kernels.cpp).
    const bool forward = kernel.kind == cost::KernelKind::attention;
    part.traffic -= (forward ? 1.0 : 1.0 / 3) * (n - 1) * keys_;
    for (const int slot : whole.writes) {
      if (is_in(sums_, slot))
        part.traffic -= (n - 1) * gradients_ / static_cast<double>(sums_.size());
    }
    return part;
  }

  /// Adds the last task of a ring, which does to values what the whole tasks did. What these passed
  /// on among themselves takes no memory.
  void finish(Task last) {
    for (const auto* slots : {&whole_, &sums_}) {
      append(last.writes, *slots);
      for (const int slot : *slots) slot_of(slot).bytes = {};
    }
    append(last.reads, own_);
    for (const int task : ring_->all()) {
      const Task& old = tasks_.old(task);
      append(last.reads, old.reads);
      append(last.writes, old.writes);
      last.operations.insert(last.operations.end(), old.operations.begin(), old.operations.end());
      last.synchronizations += old.synchronizations;
    }
    std::erase_if(last.reads, [&](int slot) { return is_in(whole_, slot) || is_in(sums_, slot); });
    for (auto* slots : {&last.reads, &last.writes}) sort_once(*slots);
    const int number = tasks_.add(std::move(last));
    for (const int task : ring_->all()) tasks_.stands_for(number, task);
  }

  /// A kernel that moves memory, as much as these bytes.
  [[nodiscard]] Task task_of(std::string name, Bytes traffic, int launches) const {
    const Kernel& attention = first_kernel();
    Task task{};
    task.name = std::move(name);
    task.work = Kernel{.kind = cost::KernelKind::elementwise,
                       .type = attention.type,
                       .traffic = traffic,
                       .launches = launches,
                       .by = within_call(attention.by),
                       .pass = attention.pass};
    task.recomputed = tasks_.old(ring_->kernels.front()).recomputed;
    return task;
  }

  int add_slot(int like, const std::string& what, Bytes bytes) {
    program::Slot slot = tasks_.block().slots[like];
    slot.name += " " + what;
    slot.bytes = bytes;
    slot.category = program::Category::temporaries;
    tasks_.block().slots.push_back(std::move(slot));
    return static_cast<int>(tasks_.block().slots.size()) - 1;
  }

  [[nodiscard]] const std::string& name() const { return tasks_.old(ring_->kernels.front()).name; }
  [[nodiscard]] const Kernel& first_kernel() const {
    return tasks_.kernel_of(ring_->kernels.front());
  }

  program::Slot& slot_of(int slot) { return tasks_.block().slots[slot]; }
  [[nodiscard]] Bytes bytes_of(const std::vector<int>& slots) const {
    Bytes sum;
    for (const int slot : slots) sum += tasks_.block().slots[slot].bytes;
    return sum;
  }

  /// What kernels write that is not passed on: gradients of the queries.
  [[nodiscard]] std::vector<int> own_gradients() const {
    std::vector<int> slots;
    for (const int kernel : ring_->kernels) append(slots, tasks_.old(kernel).writes);
    std::erase_if(slots, [&](int slot) { return is_in(sums_, slot); });
    return slots;
  }

  Rewriting tasks_;
  std::map<int, const Ring*> ring_of_;  ///< by task
  // Of the ring that is being written.
  const Ring* ring_ = nullptr;
  std::vector<int> own_;    ///< slots of own keys and values
  std::vector<int> whole_;  ///< slots of all of them
  std::vector<int> sums_;   ///< slots of their gradients, which are partial sums
  Bytes keys_;              ///< keys and values of a rank
  Bytes gradients_;         ///< their gradients
};

}  // namespace

Moved run_in_rings(Block& block, const std::vector<Ring>& rings) {
  return WritingRings(block, rings).run();
}

}  // namespace stratagem::lowering
