// Kernels that communication slows down: their progress and their ends.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "sim/instant.hpp"
#include "sim/relative_state.hpp"

namespace stratagem::sim {

/// Millionths of a share of a kernel's speed, so that work is counted in whole numbers. Throws
/// InputError unless 0 <= share < 1.
int to_millionths(double share);

/// Work of `amount` from `from` on. It progresses at rate 1 - s, s being `millionths` / 10^6, while
/// its GPU communicates, and at rate 1 else. It ends in the first whole picosecond in which all of
/// it is done: that follows from the whole time of communication since `from`, so rounding never
/// adds up, however often the rate changes.
class SlowedWork {
 public:
  SlowedWork(Instant from, Ticks amount, int millionths)
      : from_(from), amount_(amount), millionths_(millionths) {}

  /// The GPU communicated from `since` to `until`; calls come in the order of time.
  void slow(Instant since, Instant until);
  /// Its end if the GPU does not communicate any more.
  [[nodiscard]] Instant end() const;
  /// Its end if the GPU communicates from `since` on for ever.
  [[nodiscard]] Instant end(Instant since) const;
  [[nodiscard]] Instant from() const { return from_; }
  void write(RelativeState& state) const;

 private:
  Instant from_;
  Ticks amount_;
  int millionths_;
  Ticks slowed_;  ///< time of communication since `from`, until the work ended
};

/// A task whose end depends on communication: all of its kernels, and its last one from its launch
/// on.
struct SlowedKernel {
  int queue = 0;
  SlowedWork all;
  SlowedWork last;
};

/// The kernels under way of all actors, and whether they communicate. Each actor has one event: the
/// end of its kernel that ends next, of several the one of the lowest queue.
class SlowedKernels {
 public:
  explicit SlowedKernels(std::size_t actors) : states_(actors) {}

  /// A kernel that ended.
  struct Ended {
    int actor = 0;
    SlowedKernel kernel;
    Instant end;
  };

  /// Adds a kernel; its event counts after the next `schedule`.
  void begin(int actor, const SlowedKernel& kernel);
  [[nodiscard]] bool any(int actor) const { return !states_[actor].kernels.empty(); }
  /// Removes the kernel of an actor that ends next, if no communication begins or ends before.
  Ended end_next(int actor);
  /// One more collective of an actor is under way from `now` on, or one less.
  void begin_communication(int actor, Instant now);
  void end_communication(int actor, Instant now);
  /// Brings an actor's event up to date.
  void schedule(int actor);

  /// The instant of the next event, `never` if there is none.
  [[nodiscard]] Instant next_end() const { return events_.empty() ? never : events_.top().when; }
  /// Removes a kernel that ends at `now`, in the order of instants and then of `schedule`.
  std::optional<Ended> end_at(Instant now);

  /// Adds what is left to do, and in which order kernels that end at one instant do so. Expects
  /// that all events are up to date.
  void write(RelativeState& state) const;

 private:
  struct Communicating {
    std::vector<SlowedKernel> kernels;
    int collectives = 0;  ///< under way
    Instant since;        ///< when the first of them began, if there are any
    std::int64_t event = -1;
    bool changed = false;
  };
  struct Event {
    Instant when;
    std::int64_t number;  ///< an actor's latest one is valid
    int actor;
    friend auto operator<=>(const Event&, const Event&) = default;
  };
  struct Next {
    std::size_t kernel;
    Instant end;
  };

  static Instant end_of(const Communicating& state, const SlowedKernel& kernel);
  static Next next_of(const Communicating& state);
  void drop_outdated();

  std::vector<Communicating> states_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t number_ = 0;
};

}  // namespace stratagem::sim
