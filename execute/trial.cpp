// Times iterations, and takes the one of the median time. All ranks find the same median, so they
// agree on whose timeline is told.
#include "execute/trial.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "execute/types.hpp"

namespace stratagem::execute {
namespace {

// Of an iteration. Ticks are 10 ms, so one is too much below half a second, and none may be 9 ms.
constexpr double most_stolen = 0.02;
constexpr int most_tries = 3;  // iterations for each that is to count

/// The largest that any rank has.
Seconds largest(Seconds mine, kernels::Communicator& world) {
  std::array<double, 1> most{mine.value};
  world.all_reduce(kernels::Reduction::maximum, std::span<double>(most));
  return Seconds{most[0]};
}

/// What is watched around an iteration, or several that overlap.
class Looks {
 public:
  Looks(const Watch& watch, kernels::Communicator& world)
      : watch_(watch), world_(world), pace_(pace()) {}

  /// Right before it, behind the barrier.
  void before() { stolen_ = stolen(); }

  /// Right after it: what was stolen meanwhile from the processor that lost most, and the mean of
  /// the pace now and when this was asked the last time.
  void after(TimedIteration& iteration) {
    const std::vector<Seconds> now = stolen();
    Seconds most;
    for (std::size_t i = 0; i < std::min(now.size(), stolen_.size()); ++i)
      most = std::max(most, now[i] - stolen_[i]);
    iteration.stolen = largest(most, world_);
    const Seconds pace_before = pace_;
    pace_ = pace();
    iteration.pace = 0.5 * (pace_before + pace_);
  }

 private:
  [[nodiscard]] Seconds pace() const {
    return watch_.yardstick == nullptr ? Seconds{}
                                       : kernels::slowest_pace(*watch_.yardstick, world_);
  }
  [[nodiscard]] std::vector<Seconds> stolen() const {
    return watch_.stolen ? watch_.stolen() : std::vector<Seconds>{};
  }

  const Watch& watch_;
  kernels::Communicator& world_;
  Seconds pace_;
  std::vector<Seconds> stolen_;
};

template <typename T>
TimedIteration timed_iteration(Interpreter<T>& rank, kernels::Communicator& world, Looks& looks) {
  world.barrier();
  looks.before();
  const auto begin = std::chrono::steady_clock::now();
  rank.iterate();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  TimedIteration result{.time = largest(Seconds{taken.count()}, world)};
  looks.after(result);
  return result;
}

/// Iterations that overlap, as many more before and after those that are timed as are on their way.
template <typename T>
std::vector<TimedIteration> timed_together(Interpreter<T>& rank, kernels::Communicator& world,
                                           int lag, int steps, Looks& looks) {
  world.barrier();
  looks.before();
  rank.train(steps + 2 * lag + 1);
  TimedIteration all;
  looks.after(all);
  std::vector<double> ends;
  for (const Seconds end : rank.ends()) ends.push_back(end.value);
  world.all_reduce(kernels::Reduction::maximum, std::span<double>(ends));
  std::vector<TimedIteration> result;
  for (auto i = static_cast<std::size_t>(lag) + 1; result.size() < static_cast<std::size_t>(steps);
       ++i) {
    const Seconds time{ends[i] - ends[i - 1]};
    result.push_back(
        {.time = time, .pace = all.pace, .stolen = time.value / ends.back() * all.stolen});
  }
  return result;
}

std::size_t place_of_median(const std::vector<TimedIteration>& iterations, int steps) {
  std::vector<std::size_t> order = counting(iterations, steps);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return iterations[i].time; });
  return order[(order.size() - 1) / 2];
}

std::vector<Bytes> of_all(std::size_t bytes, kernels::Communicator& world) {
  const std::array<double, 1> mine{static_cast<double>(bytes)};
  std::vector<double> all(static_cast<std::size_t>(world.size()));
  world.all_gather(kernels::In<double>(mine), std::span<double>(all));
  std::vector<Bytes> result;
  for (const double each : all) result.push_back(Bytes{each});
  return result;
}

}  // namespace

bool disturbed(const TimedIteration& iteration) {
  return iteration.stolen > most_stolen * iteration.time;
}

std::vector<std::size_t> counting(const std::vector<TimedIteration>& iterations, int steps) {
  std::vector<std::size_t> places(iterations.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t i) {
    return std::pair(disturbed(iterations[i]), iterations[i].stolen);
  });
  places.resize(std::min(places.size(), static_cast<std::size_t>(steps)));
  std::ranges::sort(places);
  return places;
}

template <typename T>
Trial trial(const program::Program& program, Interpreter<T>& rank, kernels::Communicator& world,
            int steps, const std::function<void(const TimedIteration&)>& after,
            const Watch& watch) {
  expects(steps > 0, "a trial has steps");
  Looks looks(watch, world);
  Trial result;
  std::vector<Recording> recordings;
  if (program.lag > 0) result.iterations = timed_together(rank, world, program.lag, steps, looks);
  for (const TimedIteration& iteration : result.iterations) {
    if (after) after(iteration);
  }
  int left_alone = 0;
  for (int i = 0; program.lag == 0 && left_alone < steps && i < most_tries * steps; ++i) {
    result.iterations.push_back(timed_iteration(rank, world, looks));
    recordings.push_back(rank.recording());
    if (!disturbed(result.iterations.back())) ++left_alone;
    if (after) after(result.iterations.back());
  }
  const std::size_t median = place_of_median(result.iterations, steps);
  result.recorded = result.iterations[median].time;
  if (program.lag == 0) result.timeline = timeline(program, recordings[median], world);
  result.peaks = of_all(rank.arena().peak(), world);
  result.extents = of_all(rank.arena().packing().extent, world);
  return result;
}

#define INSTANTIATE(T)                                                                           \
  template Trial trial<T>(const program::Program&, Interpreter<T>&, kernels::Communicator&, int, \
                          const std::function<void(const TimedIteration&)>&, const Watch&);
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute
