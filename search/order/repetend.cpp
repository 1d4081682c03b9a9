// One question to the solver for each period, then for each latency.
#include "search/order/repetend.hpp"

#include <algorithm>
#include <numeric>

#include "base/input_error.hpp"
#include "search/order/repetend_figures.hpp"
#include "search/order/repetend_list.hpp"
#include "search/order/repetend_question.hpp"

namespace stratagem::search {
namespace {

int devices_of(const Repeating& problem) { return static_cast<int>(problem.limits.size()); }

/// The busiest device's work, or the longest block where that is longer.
int work_of_busiest(const Repeating& problem) {
  std::vector<int> work(devices_of(problem));
  int most = 0;
  for (const Block& block : problem.blocks) {
    most = std::max(most, block.span);
    for (const int device : block.devices) most = std::max(most, work[device] += block.span);
  }
  return most;
}

/// All blocks of a micro-batch one after another.
int whole_work(const Repeating& problem) {
  return std::accumulate(problem.blocks.begin(), problem.blocks.end(), 0,
                         [](int sum, const Block& block) { return sum + block.span; });
}

/// The same phases, each as early as the blocks before it allow. Expects a schedule.
Repetend earliest(const Repeating& problem, Repetend found) {
  for (int& begin : found.begins) begin %= found.period;
  const auto wait = [&](int before, int b, int lag) {
    const int from = found.begins[before] + problem.blocks[before].span - lag * found.period;
    const bool waits = found.begins[b] < from;
    while (found.begins[b] < from) found.begins[b] += found.period;
    return waits;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int b = 0; b < static_cast<int>(problem.blocks.size()); ++b) {
      for (const int before : problem.blocks[b].after) moved = wait(before, b, 0) || moved;
    }
    for (const Asked& asked : problem.asked)
      moved = wait(asked.before, asked.after, asked.lag) || moved;
  }
  found.latency = latency_of(problem, found.begins);
  found.peaks = peaks_of(problem, found);
  return found;
}

/// Takes the solver's schedule, or what is left of it without needless waits, unless that breaks a
/// limit: the solver keeps those that it knows.
void take(const Question& question, const Repeating& problem, Repetend& found) {
  found.begins = question.begins();
  found.latency = latency_of(problem, found.begins);
  found.peaks = peaks_of(problem, found);
  Repetend sooner = earliest(problem, found);
  if (within_limits(problem, sooner)) found = std::move(sooner);
}

/// The shortest latency of a period that has a schedule: what lies between that of the schedule
/// that is known and what is proved to be too short is halved. `found` has the former, and in
/// least_latency the latter.
void shorten(Question& question, const Repeating& problem, Repetend& found) {
  int low = found.least_latency;
  while (low < found.latency) {
    const int middle = low + (found.latency - low) / 2;
    const Question::Reply result = question.ask(middle);
    if (result == Question::Reply::yes) {
      take(question, problem, found);
    } else {
      low = middle + 1;
      if (result == Question::Reply::no) found.least_latency = low;
    }
  }
}

/// The best schedule of a period. Which device needs a limit on what it holds at any time is seen
/// when a schedule breaks it: what is impossible without that limit is so with it.
Question::Reply solve(const Repeating& problem, unsigned effort, int slowest, Repetend& found) {
  Question question(problem, found.period, effort);
  const auto known = best_listed(problem, found.period);
  std::vector<bool> limited(problem.limits.size());
  while (true) {
    if (known) {
      found.begins = known->begins;
      found.latency = known->latency;
      found.peaks = known->peaks;
    } else {
      const Question::Reply result = question.ask(slowest);
      if (result != Question::Reply::yes) return result;
      take(question, problem, found);
    }
    shorten(question, problem, found);
    if (within_limits(problem, found)) return Question::Reply::yes;
    for (int device = 0; device < devices_of(problem); ++device) {
      if (found.peaks[device] <= problem.limits[device]) continue;
      expects(!limited[device], "a schedule keeps the limits that the solver knows");
      question.limit(device);
      limited[device] = true;
    }
  }
}

/// How many periods a block may have to wait, in all, since other micro-batches come first.
int asked_for(const Repeating& problem) {
  return std::accumulate(problem.asked.begin(), problem.asked.end(), 0,
                         [](int sum, const Asked& asked) { return sum + std::max(0, -asked.lag); });
}

}  // namespace

std::optional<Repetend> best_repetend(const Repeating& problem, const RepetendOptions& options) {
  expects(!problem.blocks.empty(), "a micro-batch has a block");
  const auto too_large = [&](const Held& one) { return one.amount > problem.limits[one.device]; };
  if (std::ranges::any_of(problem.held, too_large)) return std::nullopt;
  const int blocks = static_cast<int>(problem.blocks.size());
  // One micro-batch after another is the longest period that could be of use.
  const int longest = whole_work(problem);
  const int longest_way = latency_of(problem, earliest_begins(problem));
  Repetend found{.least_period = work_of_busiest(problem)};
  for (found.period = found.least_period; found.period <= longest; ++found.period) {
    found.least_latency = longest_way;
    // Between a block and the next there is no reason to wait for a whole period, unless
    // micro-batches between them are asked for.
    const int slowest = longest + blocks * (found.period - 1) + found.period * asked_for(problem);
    const Question::Reply result = solve(problem, options.effort, slowest, found);
    if (result == Question::Reply::yes) {
      const int first = *std::ranges::min_element(found.begins);
      for (int& begin : found.begins) begin -= first;
      return found;
    }
    if (result == Question::Reply::no && found.least_period == found.period) ++found.least_period;
  }
  if (found.least_period == found.period) return std::nullopt;
  throw InputError("", "", "more effort of the solver",
                   "neither an order nor a proof that there is none");
}

std::vector<std::vector<OrderedBlock>> unrolled(const Repeating& problem, const Repetend& repetend,
                                                int micro_batches) {
  std::vector<std::vector<OrderedBlock>> order(devices_of(problem));
  for (int b = 0; b < static_cast<int>(problem.blocks.size()); ++b) {
    for (const int device : problem.blocks[b].devices) {
      for (int m = 0; m < micro_batches; ++m) order[device].push_back({b, m});
    }
  }
  for (auto& blocks : order) {
    std::ranges::stable_sort(blocks, {}, [&](const OrderedBlock& one) {
      return repetend.begins[one.block] + one.micro_batch * repetend.period;
    });
  }
  return order;
}

}  // namespace stratagem::search
