// Counts runs, and issues in their order the calls that bring what they need.
#include "lowering/residency/ahead.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

AheadOfRuns::AheadOfRuns(const SequenceContext& context, SequenceDraft& draft,
                         std::vector<SegmentRun> runs, int prefetch, int room)
    : c_(context),
      draft_(draft),
      runs_(std::move(runs)),
      ahead_(static_cast<std::size_t>(prefetch) + 1),
      room_(room > 0 ? static_cast<std::size_t>(room) : ahead_) {}

void AheadOfRuns::before_run() {
  const std::size_t end = std::min(runs_.size(), ended_.size() + ahead_);
  while (brought_.size() < end && may_issue(brought_.size()))
    brought_.push_back(issue(brought_.size()));
}

void AheadOfRuns::after_run(int call) {
  const std::size_t now = ended_.size();
  expects(now < brought_.size(), "what a segment needs is there before it runs");
  connect(now, call);
  ended_.push_back(end_of(now, call));
}

std::optional<SegmentRun> AheadOfRuns::next_run() const {
  return next() < runs_.size() ? std::optional(runs_[next()]) : std::nullopt;
}

bool AheadOfRuns::wait_for_room(std::size_t run, int call) {
  if (run < room_) return false;
  if (const Written& ended = ended_[run - room_]; ended.call >= 0) draft_.wait(call, 0, ended);
  return true;
}

Written AheadOfRuns::follow(std::size_t run, int call) {
  if (!wait_for_room(run, call) && run > 0) draft_.wait(call, 0, brought_[0]);
  return {call, static_cast<int>(draft_.tasks_of(call).size()) - 1};
}

void AheadOfRuns::hold_readers(std::size_t run, int call, const std::set<int>& places) {
  const LoweredBlock& lowered = runs_[run].block->lowered;
  std::map<program::Stream, int> readers;
  for (const int place : places) {
    const auto found = lowered.first_readers.find(place);
    if (found == lowered.first_readers.end()) continue;
    for (const auto& [stream, task] : found->second) {
      const auto known = readers.emplace(stream, task).first;
      known->second = std::min(known->second, task);
    }
  }
  for (const auto& [stream, task] : readers) draft_.wait(call, task, brought_[run]);
}

}  // namespace stratagem::lowering
