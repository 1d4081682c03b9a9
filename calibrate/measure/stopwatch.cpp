// Repeats work until its median is known well enough, or the budget is spent.
#include "calibrate/measure/stopwatch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::calibrate {
namespace {

Seconds now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return Seconds{std::chrono::duration<double>(since).count()};
}

}  // namespace

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
  const Seconds begin = now();
  for (int i = 0; i < effort.warm_up; ++i) work();
  const Seconds once = effort.warm_up > 0 ? (1.0 / effort.warm_up) * (now() - begin) : Seconds{};
  const int times = once < effort.shortest && once.value > 0
                        ? static_cast<int>(std::ceil(effort.shortest / once))
                        : 1;
  std::vector<Seconds> samples;
  Timed result;
  while (true) {
    const Seconds start = now();
    for (int i = 0; i < times; ++i) work();
    samples.push_back((1.0 / times) * (now() - start));
    if (static_cast<int>(samples.size()) < effort.least) continue;
    result = median_of(samples);
    if (result.spread <= effort.confidence || now() - begin > effort.budget) return result;
  }
}

}  // namespace stratagem::calibrate
