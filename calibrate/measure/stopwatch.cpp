// Repeats work until its median is known well enough, or the budget is spent.
#include "calibrate/measure/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>
#include <vector>

#include "base/input_error.hpp"
#include "kernels/core_speed.hpp"

namespace stratagem::calibrate {
namespace {

/// Is the worst spread of any rank good enough, or the budget of any of them, which each has for
/// itself, spent? The same answer on all.
bool finished(double spread, Seconds spent, const Effort& effort, kernels::Communicator& ranks) {
  std::array<double, 2> worst{spread, (spent - effort.budget).value};
  ranks.all_reduce(kernels::Reduction::maximum, std::span<double>(worst));
  return worst[0] <= effort.confidence || worst[1] > 0;
}

/// How long rounds took, from `begins` and `ends` after each rank's `origin`.
std::vector<Seconds> slowest(std::vector<double> begins, std::vector<double> ends, Seconds origin,
                             kernels::Communicator& ranks, bool one_clock) {
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (one_clock) {
      begins[i] += origin.value;
      ends[i] += origin.value;
    } else {
      ends[i] -= begins[i];
      begins[i] = 0;
    }
  }
  ranks.all_reduce(kernels::Reduction::maximum, std::span(begins));
  ranks.all_reduce(kernels::Reduction::maximum, std::span(ends));
  std::vector<Seconds> result;
  for (std::size_t i = 0; i < begins.size(); ++i) result.push_back(Seconds{ends[i] - begins[i]});
  return result;
}

/// Looks at the slowest core's pace between samples, and the pace that a median of them stands for;
/// the same on all ranks.
class Pace {
 public:
  explicit Pace(kernels::Communicator& ranks) : ranks_(ranks) {}

  void look() { looks_.push_back(kernels::slowest_pace(yardstick_, ranks_)); }

  /// Of the median of samples, `apart` of which were taken between two looks, or fewer before the
  /// last. Each sample over its own pace, the mean of the looks around it, gives another median:
  /// the first over the second is the pace.
  [[nodiscard]] Seconds of(Seconds median, const std::vector<Seconds>& samples, int apart) const {
    std::vector<Seconds> in_yardsticks;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t before = i / static_cast<std::size_t>(apart);
      const std::size_t after = std::min(before + 1, looks_.size() - 1);
      in_yardsticks.push_back(Seconds{samples[i] / (0.5 * (looks_[before] + looks_[after]))});
    }
    return Seconds{median / median_of(std::move(in_yardsticks)).median};
  }

 private:
  kernels::Communicator& ranks_;
  kernels::Yardstick yardstick_;
  std::vector<Seconds> looks_;
};

/// How many samples there are between two looks at the pace, 20 ms or one sample: the same on all.
int samples_apart(Seconds sample, kernels::Communicator& ranks) {
  std::array<double, 1> longest{sample.value};
  ranks.all_reduce(kernels::Reduction::maximum, std::span<double>(longest));
  constexpr double apart = 0.02;
  constexpr double most = 1000;
  return static_cast<int>(std::clamp(apart / longest[0], 1.0, most));
}

}  // namespace

Seconds now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return Seconds{std::chrono::duration<double>(since).count()};
}

Timed slowest(const Timed& mine, kernels::Communicator& ranks) {
  const std::array<double, 4> part = {mine.median.value, mine.spread,
                                      static_cast<double>(mine.repeats), mine.pace.value};
  std::vector<double> all(part.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(kernels::In<double>(part), std::span(all));
  Timed result = mine;
  for (std::size_t i = 0; i < all.size(); i += part.size()) {
    if (i == 0 || all[i] > result.median.value)
      result = {Seconds{all[i]}, all[i + 1], static_cast<int>(all[i + 2]), Seconds{all[i + 3]}};
  }
  return result;
}

Timed median_of(std::vector<Seconds> samples) {
  expects(!samples.empty(), "a median is of at least one sample");
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  const Seconds median = n % 2 == 1 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  const double reach = 0.98 * std::sqrt(static_cast<double>(n));
  const double middle = static_cast<double>(n) / 2;
  const auto lower = static_cast<std::size_t>(std::max(0.0, std::floor(middle - reach)));
  const auto upper = std::min(n - 1, static_cast<std::size_t>(std::ceil(middle + reach)));
  const Seconds width = samples[upper] - samples[lower];
  return {.median = median, .spread = 0.5 * width / median, .repeats = static_cast<int>(n)};
}

Timed time_of(const std::function<void()>& work, const Effort& effort) {
  const auto alone = kernels::lone();
  return time_of(work, effort, *alone);
}

Timed time_of(const std::function<void()>& work, const Effort& effort,
              kernels::Communicator& ranks) {
  ranks.barrier();
  const Seconds begin = now();
  for (int i = 0; i < effort.warm_up; ++i) work();
  const Seconds once = effort.warm_up > 0 ? (1.0 / effort.warm_up) * (now() - begin) : Seconds{};
  const int times = once < effort.shortest && once.value > 0
                        ? static_cast<int>(std::ceil(effort.shortest / once))
                        : 1;
  const int apart = samples_apart(static_cast<double>(times) * once, ranks);
  std::vector<Seconds> samples;
  Pace pace(ranks);
  pace.look();
  while (true) {
    ranks.barrier();
    const Seconds start = now();
    for (int i = 0; i < times; ++i) work();
    samples.push_back((1.0 / times) * (now() - start));
    const auto taken = static_cast<int>(samples.size());
    if (taken % apart == 0) pace.look();
    if (taken < effort.least) continue;
    Timed mine = median_of(samples);
    if (!finished(mine.spread, now() - begin, effort, ranks)) continue;
    if (taken % apart != 0) pace.look();
    mine.pace = pace.of(mine.median, samples, apart);
    return slowest(mine, ranks);
  }
}

std::optional<Timed> time_behind_fills(
    const std::function<GpuSample(int launches, int fills)>& once, const Effort& effort) {
  const Seconds begin = now();
  int fills = 1;
  const auto sample = [&](int launches) -> std::optional<Seconds> {
    constexpr int most_fills = 32;  // a launch that waits for the GPU is never ahead of it
    constexpr int tries = 8;  // five until then, and some more where somebody else held up the host
    for (int i = 0; i < tries; ++i) {
      const GpuSample taken = once(launches, fills);
      if (taken.host_was_ahead) return taken.time;
      fills = std::min(2 * fills, most_fills);
    }
    return std::nullopt;
  };
  const std::optional<Seconds> first = sample(1);
  if (!first) return std::nullopt;
  constexpr Seconds worth{100e-6};  // events tell half a microsecond
  const int launches = std::clamp(static_cast<int>(std::ceil(worth / *first)), 1, 32);
  std::vector<Seconds> samples;
  while (const std::optional<Seconds> next = sample(launches)) {
    samples.push_back(*next);
    if (static_cast<int>(samples.size()) < effort.least) continue;
    const Timed result = median_of(samples);
    if (result.spread <= effort.confidence || now() - begin > effort.budget) return result;
  }
  return std::nullopt;
}

Timed time_of_rounds(const std::function<std::vector<Seconds>()>& round, const Effort& effort,
                     kernels::Communicator& ranks) {
  const Seconds begin = now();
  std::vector<Seconds> samples;
  while (true) {
    for (const Seconds sample : round()) samples.push_back(sample);
    const Timed timed = median_of(samples);
    if (finished(timed.spread, now() - begin, effort, ranks)) return timed;
  }
}

Timed time_of_collective(const std::function<void()>& work, const Effort& effort,
                         kernels::Communicator& ranks, bool one_clock) {
  const Seconds begin = now();
  for (int i = 0; i < effort.warm_up; ++i) work();
  const auto rounds = static_cast<std::size_t>(effort.least);
  const auto round = [&] {
    std::vector<double> begins(rounds), ends(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      ranks.barrier();
      begins[i] = (now() - begin).value;
      work();
      ends[i] = (now() - begin).value;
    }
    return slowest(begins, ends, begin, ranks, one_clock);
  };
  Effort rest = effort;
  rest.budget = effort.budget - (now() - begin);
  return time_of_rounds(round, rest, ranks);
}

}  // namespace stratagem::calibrate
