// All ranks find the same median, so they agree on whose timeline is told.
#include "execute/trial.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>

#include "base/input_error.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {
namespace {

/// The pace of the slowest core, as often as it is asked for; with no yardstick 0.
class Pace {
 public:
  Pace(kernels::Yardstick* yardstick, kernels::Communicator& world)
      : yardstick_(yardstick), world_(world), last_(now()) {}

  /// The mean of what it is now and what it was when this was asked the last time.
  Seconds since() {
    const Seconds before = last_;
    last_ = now();
    return 0.5 * (before + last_);
  }

 private:
  [[nodiscard]] Seconds now() const {
    return yardstick_ == nullptr ? Seconds{} : kernels::slowest_pace(*yardstick_, world_);
  }

  kernels::Yardstick* yardstick_;
  kernels::Communicator& world_;
  Seconds last_;
};

template <typename T>
TimedIteration timed_iteration(Interpreter<T>& rank, kernels::Communicator& world, Pace& pace) {
  world.barrier();
  const auto begin = std::chrono::steady_clock::now();
  rank.iterate();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::array<double, 1> slowest{taken.count()};
  world.all_reduce(kernels::Reduction::maximum, std::span<double>(slowest));
  return {.time = Seconds{slowest[0]}, .pace = pace.since()};
}

/// Iterations that overlap, as many more before and after those that are timed as are on their way.
template <typename T>
std::vector<TimedIteration> timed_together(Interpreter<T>& rank, kernels::Communicator& world,
                                           int lag, int steps, Pace& pace) {
  world.barrier();
  rank.train(steps + 2 * lag + 1);
  const Seconds meanwhile = pace.since();
  std::vector<double> ends;
  for (const Seconds end : rank.ends()) ends.push_back(end.value);
  world.all_reduce(kernels::Reduction::maximum, std::span<double>(ends));
  std::vector<TimedIteration> result;
  for (auto i = static_cast<std::size_t>(lag) + 1; result.size() < static_cast<std::size_t>(steps);
       ++i)
    result.push_back({.time = Seconds{ends[i] - ends[i - 1]}, .pace = meanwhile});
  return result;
}

std::size_t place_of_median(const std::vector<TimedIteration>& iterations) {
  std::vector<std::size_t> order(iterations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
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

template <typename T>
Trial trial(const strategies::Program& program, Interpreter<T>& rank, kernels::Communicator& world,
            int steps, const std::function<void(const TimedIteration&)>& after,
            kernels::Yardstick* yardstick) {
  expects(steps > 0, "a trial has steps");
  Pace pace(yardstick, world);
  Trial result;
  std::vector<Recording> recordings;
  if (program.lag > 0) result.iterations = timed_together(rank, world, program.lag, steps, pace);
  for (const TimedIteration& iteration : result.iterations) {
    if (after) after(iteration);
  }
  for (int i = 0; program.lag == 0 && i < steps; ++i) {
    result.iterations.push_back(timed_iteration(rank, world, pace));
    recordings.push_back(rank.recording());
    if (after) after(result.iterations.back());
  }
  const std::size_t median = place_of_median(result.iterations);
  result.recorded = result.iterations[median].time;
  if (program.lag == 0) result.timeline = timeline(program, recordings[median], world);
  result.peaks = of_all(rank.arena().peak(), world);
  result.extents = of_all(rank.arena().placement().extent, world);
  return result;
}

#define INSTANTIATE(T)                                                                         \
  template Trial trial<T>(const strategies::Program&, Interpreter<T>&, kernels::Communicator&, \
                          int, const std::function<void(const TimedIteration&)>&,              \
                          kernels::Yardstick*);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(kernels::Half)
INSTANTIATE(kernels::BFloat16)
#undef INSTANTIATE

}  // namespace stratagem::execute
