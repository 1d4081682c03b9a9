// Counts whole periods between begins and ends.
#include "search/order/repetend_figures.hpp"

#include <algorithm>
#include <functional>

#include "base/input_error.hpp"

namespace stratagem::search {
namespace {

int floor_of(int time, int period) {
  return time >= 0 ? time / period : -((-time + period - 1) / period);
}

}  // namespace

std::vector<int> earliest_begins(const Repeating& problem) {
  std::vector<int> begins(problem.blocks.size());
  for (std::size_t round = 0; round <= problem.blocks.size(); ++round) {
    bool later = false;
    for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
      int begin = 0;
      for (const int before : problem.blocks[b].after)
        begin = std::max(begin, begins[before] + problem.blocks[before].span);
      later = later || begin > begins[b];
      begins[b] = begin;
    }
    if (!later) return begins;
  }
  throw InputError("", "", "blocks without a cycle", "one");
}

int latency_of(const Repeating& problem, const std::vector<int>& begins) {
  int last = 0;
  for (std::size_t b = 0; b < begins.size(); ++b)
    last = std::max(last, begins[b] + problem.blocks[b].span);
  return last - *std::ranges::min_element(begins);
}

std::vector<std::int64_t> peaks_of(const Repeating& problem, const Repetend& found) {
  std::vector<std::int64_t> peaks(problem.limits.size());
  for (const Held& now : problem.held) {
    std::int64_t sum = 0;
    const int when = found.begins[now.from];
    for (const Held& one : problem.held) {
      if (one.device != now.device) continue;
      const int end = found.begins[one.to] + problem.blocks[one.to].span;
      sum += one.amount * (floor_of(when - found.begins[one.from], found.period) -
                           floor_of(when - end, found.period));
    }
    peaks[now.device] = std::max(peaks[now.device], sum);
  }
  return peaks;
}

bool within_limits(const Repeating& problem, const Repetend& found) {
  return std::ranges::equal(found.peaks, problem.limits, std::less_equal());
}

}  // namespace stratagem::search
