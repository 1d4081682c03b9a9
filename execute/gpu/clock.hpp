// When a GPU begins and ends tasks, by its own clock.
#pragma once

#include <cstddef>
#include <deque>

#include "execute/recording.hpp"
#include "kernels/device.hpp"

namespace stratagem::execute::gpu {

/// Of one stream, which outlives it.
class Clock {
 public:
  explicit Clock(const kernels::Stream& stream) : stream_(stream) {}

  void start(Recording& recording, std::size_t tasks) {
    while (events_.size() < 2 * tasks) events_.emplace_back();
    tasks_ = tasks;
    stream_.synchronise();
    recording.start(tasks);
    first_.record(stream_);
  }
  void begin(std::size_t task) { events_[2 * task].record(stream_); }
  void end(std::size_t task) { events_[2 * task + 1].record(stream_); }
  void finish(Recording& recording) {
    stream_.synchronise();
    for (std::size_t task = 0; task < tasks_; ++task)
      recording.set(task, events_[2 * task].since(first_).value,
                    events_[2 * task + 1].since(first_).value);
  }

 private:
  const kernels::Stream& stream_;
  kernels::Event first_;
  std::deque<kernels::Event> events_;  ///< begin and end of every task
  std::size_t tasks_ = 0;
};

}  // namespace stratagem::execute::gpu
