// Goes through the changes, and through those of a repeated period with renamed buffers.
#include "sim/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "sim/repeated_buffers.hpp"

namespace stratagem::sim {
namespace {

std::int64_t whole(Bytes bytes) { return static_cast<std::int64_t>(std::ceil(bytes.value)); }

class Replay {
 public:
  Replay(CachingAllocator& allocator, const std::vector<std::vector<Instant>>& launches)
      : allocator_(allocator), launches_(launches) {}

  void play(std::span<const MemoryChange> changes) {
    for (const MemoryChange& change : changes) {
      if (change.bytes == Bytes{}) continue;
      expects(change.buffer >= 0, "what is freed was allocated");
      if (change.buffer >= static_cast<int>(blocks_.size())) blocks_.resize(change.buffer + 1, -1);
      CachingAllocator::Block& block = blocks_[change.buffer];
      const std::int64_t clock = launched(change.task).picoseconds;
      allocator_.advance(clock + later_);
      if (change.bytes > Bytes{}) {
        block = allocator_.allocate(whole(change.bytes));
      } else {
        change.ready.picoseconds > clock
            ? allocator_.free_when(block, change.ready.picoseconds + later_)
            : allocator_.free(block);
        block = -1;
      }
    }
  }

  /// From now on all is so much later, and some buffers have other names.
  void rename(const std::vector<Renamed>& buffers, Ticks later) {
    later_ += later.count;
    std::vector<CachingAllocator::Block> held;
    for (const Renamed& one : buffers) held.push_back(std::exchange(blocks_[one.after], -1));
    for (std::size_t i = 0; i < buffers.size(); ++i) blocks_[buffers[i].before] = held[i];
  }

  /// What the allocator holds for whom, when the host comes to a task.
  [[nodiscard]] std::vector<std::int64_t> state_before(int task) {
    const std::int64_t clock = launched(task).picoseconds + later_;
    allocator_.advance(clock);
    return allocator_.state(clock, blocks_);
  }

 private:
  [[nodiscard]] Instant launched(int task) const {
    const auto tasks = static_cast<int>(launches_.front().size());
    return launches_[task / tasks][task % tasks];
  }

  CachingAllocator& allocator_;
  const std::vector<std::vector<Instant>>& launches_;
  std::vector<CachingAllocator::Block> blocks_;  ///< by buffer; -1: none
  std::int64_t later_ = 0;                       ///< picoseconds
};

/// The states of an allocator after one period and the next.
class Cycles {
 public:
  /// How many periods ago it was in a state; 0 if it never was, or has released anything since.
  int ending_in(std::vector<std::int64_t> state, int releases) {
    const Known now{periods_++, releases};
    const auto [known, fresh] = known_.try_emplace(std::move(state), now);
    return fresh || known->second.releases != releases ? 0 : now.number - known->second.number;
  }

 private:
  struct Known {
    int number = 0;
    int releases = 0;
  };
  int periods_ = 0;
  std::map<std::vector<std::int64_t>, Known> known_;
};

}  // namespace

void replay(CachingAllocator& allocator, const program::Program& program, const Timeline& timeline,
            std::size_t actor, const std::vector<MemoryChange>& changes) {
  Replay replay(allocator, timeline.times[actor].launches);
  const std::span all(changes);
  if (timeline.left_out.empty()) return replay.play(all);
  const LeftOut& left_out = timeline.left_out.front();
  const auto [begin, end] = left_out.launched[actor];
  const auto before = [&](int task) {
    return std::ranges::lower_bound(changes, task, {}, &MemoryChange::task) - changes.begin();
  };
  const std::span period = all.subspan(before(begin), before(end) - before(begin));
  const auto renamed = renamed_buffers(program, timeline, actor);
  expects(renamed.has_value(), "buffers repeat");
  replay.play(all.first(before(begin)));
  replay.play(period);
  Cycles cycles;
  for (int left = left_out.periods; left > 0; --left) {
    if (const int cycle = cycles.ending_in(replay.state_before(end), allocator.releases());
        cycle > 0) {
      left %= cycle;
      if (left == 0) break;
    }
    replay.rename(*renamed, left_out.to - left_out.from);
    replay.play(period);
  }
  replay.play(all.subspan(before(end)));
}

}  // namespace stratagem::sim
