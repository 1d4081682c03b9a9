// One question to the solver for each period, then for each latency.
#include "search/repetend.hpp"

#include <z3++.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "base/input_error.hpp"

namespace stratagem::search {
namespace {

int devices_of(const Repeating& problem) { return static_cast<int>(problem.limits.size()); }

bool share_a_device(const Block& a, const Block& b) {
  return std::ranges::any_of(a.devices, [&](int device) {
    return std::ranges::find(b.devices, device) != b.devices.end();
  });
}

/// The busiest device's work, and the longest block.
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

/// When each block could begin if devices were never busy. Throws InputError if blocks wait for each
/// other in a circle.
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

/// Schedules with a period, as constraints on whole numbers. A block begins at
/// phase + period * round.
class Question {
 public:
  Question(const Repeating& problem, int period, unsigned effort)
      : problem_(problem), period_(period), solver_(context_) {
    z3::params params(context_);
    params.set("rlimit", effort);
    solver_.set(params);
    const int blocks = static_cast<int>(problem.blocks.size());
    for (int b = 0; b < blocks; ++b) add_block(b);
    for (int b = 0; b < blocks; ++b) {
      for (const int before : problem.blocks[b].after) solver_.add(end(before) <= begin(b));
    }
    for (int b = 0; b < blocks; ++b) {
      for (int a = 0; a < b; ++a) keep_apart(a, b);
    }
    for (const Asked& asked : problem.asked)
      solver_.add(end(asked.before) <= begin(asked.after) + period_ * asked.lag);
    for (int device = 0; device < devices_of(problem); ++device) {
      if (held_on(device).size() == 1) limit_one(*held_on(device).front());
    }
    last_ = context_.int_const("last");
    for (int b = 0; b < blocks; ++b) solver_.add(end(b) <= last_);
  }

  /// What is held is most when one more begins to be held, so it is looked at there.
  void limit(int device) {
    const std::vector<const Held*> here = held_on(device);
    for (const Held* now : here) {
      z3::expr sum = context_.int_val(0);
      for (const Held* one : here) {
        const z3::expr begun = periods(now->from, one->from, 0);
        const z3::expr ended = periods(now->from, one->to, problem_.blocks[one->to].span);
        sum = sum + context_.int_val(one->amount) * (begun - ended);
      }
      solver_.add(sum <= context_.int_val(problem_.limits[device]));
    }
  }

  z3::check_result ask(int latency) {
    solver_.push();
    solver_.add(last_ <= latency);
    const z3::check_result result = solver_.check();
    if (result == z3::sat) read(solver_.get_model());
    solver_.pop();
    return result;
  }
  [[nodiscard]] const std::vector<int>& begins() const { return begins_; }

 private:
  [[nodiscard]] z3::expr begin(int b) const { return phases_[b] + period_ * rounds_[b]; }
  [[nodiscard]] z3::expr end(int b) const { return begin(b) + problem_.blocks[b].span; }

  void add_block(int b) {
    const std::string number = std::to_string(b);
    phases_.push_back(context_.int_const(("phase" + number).c_str()));
    rounds_.push_back(context_.int_const(("round" + number).c_str()));
    solver_.add(rounds_[b] >= 0);
    // Each phase is a proposition, too: that blocks do not collide is logic, not arithmetic.
    std::vector<z3::expr>& phases = at_.emplace_back();
    z3::expr_vector some(context_);
    for (int phase = 0; phase < period_; ++phase) {
      const std::string name = "at" + number + "_" + std::to_string(phase);
      phases.push_back(context_.bool_const(name.c_str()));
      some.push_back(phases.back());
      solver_.add(phases.back() == (phases_[b] == phase));
    }
    solver_.add(z3::mk_or(some));
  }

  /// From a block before it, on a device that both keep busy, modulo the period.
  void keep_apart(int a, int b) {
    if (!share_a_device(problem_.blocks[a], problem_.blocks[b])) return;
    for (int one = 0; one < period_; ++one) {
      for (int other = 0; other < period_; ++other) {
        const int gap = (other - one + period_) % period_;
        const bool apart =
            gap >= problem_.blocks[a].span && gap + problem_.blocks[b].span <= period_;
        if (!apart) solver_.add(!at_[a][one] || !at_[b][other]);
      }
    }
  }

  /// Of the only thing that a device holds, n at once last at most n periods.
  void limit_one(const Held& one) {
    const std::int64_t most = problem_.limits[one.device] / one.amount;
    solver_.add(end(one.to) - begin(one.from) <= context_.int_val(most) * period_);
  }

  /// 1 if block `now` begins in an earlier phase than `shift` after the begin of `b` has, else 0.
  z3::expr earlier(int now, int b, int shift) {
    const std::string name = "earlier" + std::to_string(helpers_++);
    const z3::expr is = context_.bool_const(name.c_str());
    for (int one = 0; one < period_; ++one) {
      for (int other = 0; other < period_; ++other) {
        const bool holds = one < (other + shift) % period_;
        solver_.add(!at_[now][one] || !at_[b][other] || (holds ? is : !is));
      }
    }
    return z3::ite(is, context_.int_val(1), context_.int_val(0));
  }
  /// How many periods end within `shift` after the begin of `b`.
  z3::expr carried(int b, int shift) {
    z3::expr sum = context_.int_val(0);
    for (int phase = 0; phase < period_; ++phase) {
      const int periods = (phase + shift) / period_;
      if (periods > 0)
        sum = sum + z3::ite(at_[b][phase], context_.int_val(periods), context_.int_val(0));
    }
    return sum;
  }
  [[nodiscard]] std::vector<const Held*> held_on(int device) const {
    std::vector<const Held*> here;
    for (const Held& one : problem_.held) {
      if (one.device == device) here.push_back(&one);
    }
    return here;
  }

  /// How many periods lie between `shift` after the begin of `b` and the begin of `now`, rounded
  /// down.
  z3::expr periods(int now, int b, int shift) {
    return rounds_[now] - rounds_[b] - carried(b, shift) - earlier(now, b, shift);
  }

  void read(const z3::model& model) {
    begins_.clear();
    for (std::size_t b = 0; b < problem_.blocks.size(); ++b)
      begins_.push_back(model.eval(begin(static_cast<int>(b)), true).get_numeral_int());
  }

  const Repeating& problem_;
  int period_;
  z3::context context_;
  z3::solver solver_;
  std::vector<z3::expr> phases_, rounds_;  ///< by block
  std::vector<std::vector<z3::expr>> at_;  ///< by block and phase
  z3::expr last_{context_};
  int helpers_ = 0;
  std::vector<int> begins_;
};

int latency_of(const Repeating& problem, const std::vector<int>& begins) {
  int last = 0;
  for (std::size_t b = 0; b < begins.size(); ++b)
    last = std::max(last, begins[b] + problem.blocks[b].span);
  return last - *std::ranges::min_element(begins);
}

int floor_of(int time, int period) {
  return time >= 0 ? time / period : -((-time + period - 1) / period);
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

/// The best of some tries, which the solver may improve.
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

/// Takes the solver's schedule, or what is left of it without needless waits, unless that breaks a
/// limit: the solver keeps those that it knows.
void take(const Question& question, const Repeating& problem, Repetend& found) {
  found.begins = question.begins();
  found.latency = latency_of(problem, found.begins);
  found.peaks = peaks_of(problem, found);
  Repetend sooner = earliest(problem, found);
  if (within_limits(problem, sooner)) found = std::move(sooner);
}

/// The shortest latency of a period that has a schedule: what lies between that of the schedule that
/// is known and what is proved to be too short is halved. `found` has the former, and in
/// least_latency the latter.
void shorten(Question& question, const Repeating& problem, Repetend& found) {
  int low = found.least_latency;
  while (low < found.latency) {
    const int middle = low + (found.latency - low) / 2;
    const z3::check_result result = question.ask(middle);
    if (result == z3::sat) {
      take(question, problem, found);
    } else {
      low = middle + 1;
      if (result == z3::unsat) found.least_latency = low;
    }
  }
}

/// The best schedule of a period. Which device needs a limit on what it holds at any time is seen
/// when a schedule breaks it: what is impossible without that limit is so with it.
z3::check_result solve(const Repeating& problem, unsigned effort, int slowest, Repetend& found) {
  Question question(problem, found.period, effort);
  const auto known = best_listed(problem, found.period);
  std::vector<bool> limited(problem.limits.size());
  while (true) {
    if (known) {
      found.begins = known->begins;
      found.latency = known->latency;
      found.peaks = known->peaks;
    } else {
      const z3::check_result result = question.ask(slowest);
      if (result != z3::sat) return result;
      take(question, problem, found);
    }
    shorten(question, problem, found);
    if (within_limits(problem, found)) return z3::sat;
    for (int device = 0; device < devices_of(problem); ++device) {
      if (found.peaks[device] <= problem.limits[device]) continue;
      expects(!limited[device], "a schedule keeps the limits that the solver knows");
      question.limit(device);
      limited[device] = true;
    }
  }
}

/// How many micro-batches later than in time for its own something may have to begin.
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
    // Between a block and the next there is no reason to wait for a whole period, unless micro-batches
    // between them are asked for.
    const int slowest = longest + blocks * (found.period - 1) + found.period * asked_for(problem);
    const z3::check_result result = solve(problem, options.effort, slowest, found);
    if (result == z3::sat) {
      const int first = *std::ranges::min_element(found.begins);
      for (int& begin : found.begins) begin -= first;
      return found;
    }
    if (result == z3::unsat && found.least_period == found.period) ++found.least_period;
  }
  if (found.least_period == found.period) return std::nullopt;
  throw InputError("", "",
                   "more effort of the solver, which neither found an order nor proved that "
                   "there is none",
                   "");
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
