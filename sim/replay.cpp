// Goes through the changes, and through those of a repeated period with renamed buffers.
#include "sim/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::sim {
namespace {

/// A change as the allocator is told it; instants are of the host's clock, in picoseconds.
struct Step {
  int task = 0;
  int buffer = 0;
  std::int64_t bytes = 0;  ///< 0: a free
  std::int64_t clock = 0;
  std::int64_t ready = 0;
};

std::vector<Step> steps_of(const std::vector<MemoryChange>& changes,
                           const std::vector<std::vector<Instant>>& launches) {
  const auto tasks = static_cast<int>(launches.front().size());
  std::vector<Step> steps;
  steps.reserve(changes.size());
  for (const MemoryChange& change : changes) {
    if (change.bytes == Bytes{}) continue;
    expects(change.buffer >= 0, "what is freed was allocated");
    const auto bytes = static_cast<std::int64_t>(std::ceil(change.bytes.value));
    steps.push_back({.task = change.task,
                     .buffer = change.buffer,
                     .bytes = std::max<std::int64_t>(bytes, 0),
                     .clock = launches[change.task / tasks][change.task % tasks].picoseconds,
                     .ready = change.ready.picoseconds});
  }
  return steps;
}

/// An allocator, and the blocks of the buffers that are live.
class Replay {
 public:
  /// Buffers that are renamed may lie elsewhere than on the device: no step is of those.
  Replay(CachingAllocator& allocator, const std::vector<Step>& steps,
         const std::vector<Renamed>& renamed)
      : allocator_(allocator) {
    int last = -1;
    for (const Step& step : steps) last = std::max(last, step.buffer);
    for (const Renamed& one : renamed) last = std::max({last, one.after, one.before});
    blocks_.resize(last + 1, -1);
  }

  void play(std::span<const Step> steps) {
    for (const Step& step : steps) {
      CachingAllocator::Block& block = blocks_[step.buffer];
      allocator_.advance(step.clock + later_);
      if (step.bytes > 0) {
        block = allocator_.allocate(step.bytes);
        continue;
      }
      step.ready > step.clock ? allocator_.free_when(block, step.ready + later_)
                              : allocator_.free(block);
      block = -1;
    }
  }

  /// From now on all is so much later, and some buffers have other names.
  void rename(const std::vector<Renamed>& buffers, Ticks later) {
    later_ += later.count;
    std::vector<CachingAllocator::Block> held;
    for (const Renamed& one : buffers) held.push_back(std::exchange(blocks_[one.after], -1));
    for (std::size_t i = 0; i < buffers.size(); ++i) blocks_[buffers[i].before] = held[i];
  }

  /// Where the buffers lie that are renamed after each period.
  [[nodiscard]] std::vector<std::int64_t> addresses(const std::vector<Renamed>& buffers) const {
    std::vector<std::int64_t> result;
    for (const Renamed& one : buffers)
      result.push_back(blocks_[one.after] < 0 ? -1 : allocator_.address(blocks_[one.after]));
    return result;
  }

  /// What later steps of the allocator depend on, when the host's clock is at an instant.
  [[nodiscard]] std::vector<std::int64_t> state(Instant clock) {
    allocator_.advance(clock.picoseconds + later_);
    return allocator_.state(clock.picoseconds + later_, blocks_);
  }

  [[nodiscard]] int releases() const { return allocator_.releases(); }

 private:
  CachingAllocator& allocator_;
  std::vector<CachingAllocator::Block> blocks_;  ///< by buffer; -1: none
  std::int64_t later_ = 0;
};

/// Plays a period `times` times more. If the allocator's state is that of some periods ago, and it
/// has released nothing since, it goes round in a cycle: whole cycles change nothing and are
/// skipped. The state that others are compared with is replaced after 1, 2, 4, ... periods (Brent's
/// algorithm).
void play_again(Replay& replay, std::span<const Step> period, int times,
                const std::vector<Renamed>& renamed, Ticks length, Instant begin) {
  const Instant end = begin + length;
  std::vector<std::int64_t> addresses = replay.addresses(renamed), state = replay.state(end);
  int releases = replay.releases();
  for (int left = times, since = 0, most = 1; left > 0; --left) {
    replay.rename(renamed, length);
    replay.play(period);
    ++since;
    std::vector<std::int64_t> now = replay.addresses(renamed);
    if (now == addresses && releases == replay.releases() && replay.state(end) == state)
      left = 1 + (left - 1) % since;
    if (since < most) continue;
    addresses = std::move(now);
    state = replay.state(end);
    releases = replay.releases();
    most *= 2;
    since = 0;
  }
}

}  // namespace

void replay(CachingAllocator& allocator, const Timeline& timeline, std::size_t actor,
            const std::vector<MemoryChange>& changes) {
  const std::vector<std::vector<Instant>>& launches = timeline.times[actor].launches;
  const std::vector<Step> all = steps_of(changes, launches);
  if (timeline.left_out.empty()) return Replay(allocator, all, {}).play(all);
  const LeftOut& left_out = timeline.left_out.front();
  const auto [begin, end] = left_out.launched[actor];
  const auto first_from = [&](int task) {
    return std::ranges::lower_bound(all, task, {}, &Step::task);
  };
  const std::vector<Renamed>& renamed = timeline.renamed[actor];
  Replay replay(allocator, all, renamed);
  replay.play({all.begin(), first_from(end)});
  play_again(replay, {first_from(begin), first_from(end)}, left_out.periods, renamed,
             left_out.to - left_out.from, launches.front()[begin]);
  replay.play({first_from(end), all.end()});
}

}  // namespace stratagem::sim
