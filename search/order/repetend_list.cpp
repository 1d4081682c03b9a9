// Puts cell after cell where its devices are free.
#include "search/order/repetend_list.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "search/order/repetend_figures.hpp"

namespace stratagem::search {
namespace {

/// Puts one block after another where its devices are first free, modulo the period, sometimes a
/// little later. Nothing if that leaves one without a place, or breaks a limit.
std::optional<Repetend> listed(const Repeating& problem, const std::vector<int>& order, int period,
                               const std::function<bool()>& waits) {
  Repetend found{.period = period, .begins = std::vector<int>(order.size())};
  std::vector<std::vector<bool>> busy(problem.limits.size(), std::vector<bool>(period));
  for (const int b : order) {
    const Block& block = problem.blocks[b];
    int& begin = found.begins[b];
    for (const int before : block.after)
      begin = std::max(begin, found.begins[before] + problem.blocks[before].span);
    const auto all_units = [&](const auto& of_unit) {
      return std::ranges::all_of(block.devices, [&](int device) {
        for (int t = 0; t < block.span; ++t) {
          if (!of_unit(busy[device][(begin + t) % period])) return false;
        }
        return true;
      });
    };
    const auto is_free = [&] { return all_units([](auto unit) { return !unit; }); };
    const int last = begin + period;
    while (begin < last && (!is_free() || waits())) ++begin;
    if (begin == last) return std::nullopt;
    all_units([](auto unit) { return unit = true; });
  }
  for (const Asked& asked : problem.asked) {
    if (found.begins[asked.before] + problem.blocks[asked.before].span >
        found.begins[asked.after] + asked.lag * period)
      return std::nullopt;
  }
  found.latency = latency_of(problem, found.begins);
  found.peaks = peaks_of(problem, found);
  if (!within_limits(problem, found)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<Repetend> best_listed(const Repeating& problem, int period) {
  constexpr int tries = 500;
  const std::vector<int> begins = earliest_begins(problem);
  std::vector<int> order(begins.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int b) { return begins[b]; });
  std::mt19937 random(1);
  std::optional<Repetend> best;
  for (int i = 0; i < tries; ++i) {
    const auto waits = [&] { return i > 0 && random() % 16 == 0; };
    const auto found = listed(problem, order, period, waits);
    if (found && (!best || found->latency < best->latency)) best = found;
  }
  return best;
}

}  // namespace stratagem::search
