// Keeps and prints the task that a rank is at. One lock a task: it is taken tens of times per
// millisecond at most.
#include "execute/current_task.hpp"

namespace stratagem::execute {

void CurrentTask::during(const std::string& work) {
  const std::lock_guard lock(mutex_);
  work_ = work;
  task_ = nullptr;
}

void CurrentTask::enter(const program::Block& block, const std::string* segment,
                        const program::Task& task, int micro_batch, std::uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  block_ = &block;
  segment_ = segment;
  task_ = &task;
  micro_batch_ = micro_batch;
  iteration_ = iteration;
}

void CurrentTask::leave() {
  const std::lock_guard lock(mutex_);
  task_ = nullptr;
}

std::string CurrentTask::text() const {
  const std::lock_guard lock(mutex_);
  if (task_ == nullptr) return "between tasks of " + work_;
  std::string text = "at task " + task_->name + " of ";
  // "F layers.0" is the block of all layers that are alike.
  text += segment_ == nullptr ? block_->name
                              : block_->name.substr(0, block_->name.find(' ') + 1) + *segment_;
  if (micro_batch_ >= 0) text += ", micro-batch " + std::to_string(micro_batch_);
  return text + ", iteration " + std::to_string(iteration_) + " of " + work_;
}

}  // namespace stratagem::execute
