// One question to the solver for each period, then for each latency.
#include "search/repetend.hpp"

#include <z3++.h>

#include <algorithm>
#include <limits>
#include <numeric>

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

/// Schedules with a period, as constraints on whole numbers. A block begins at
/// phase + period * round.
class Question {
 public:
  Question(const Repeating& problem, int period, Seconds patience)
      : problem_(problem), period_(period), solver_(context_) {
    z3::params params(context_);
    params.set("timeout", static_cast<unsigned>(1e3 * patience.value));
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
    for (int device = 0; device < devices_of(problem); ++device) limit(device);
    last_ = context_.int_const("last");
    for (int b = 0; b < blocks; ++b) solver_.add(end(b) <= last_);
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

  /// The number of periods that have gone by, rounded down.
  z3::expr periods(const z3::expr& time) {
    const z3::expr whole = context_.int_const(("whole" + std::to_string(wholes_++)).c_str());
    solver_.add(whole * period_ <= time && time < (whole + 1) * period_);
    return whole;
  }

  /// Most is held right after something has begun to be.
  void limit(int device) {
    std::vector<const Held*> here;
    for (const Held& one : problem_.held) {
      if (one.device == device) here.push_back(&one);
    }
    if (here.size() == 1) {  // n at once last at most n periods
      const std::int64_t most = problem_.limits[device] / here.front()->amount;
      const int bound = static_cast<int>(std::min<std::int64_t>(most, 1 << 20));
      solver_.add(end(here.front()->to) - begin(here.front()->from) <= period_ * bound);
      return;
    }
    for (const Held* now : here) {
      z3::expr sum = context_.int_val(0);
      for (const Held* one : here) {
        const z3::expr begun = periods(begin(now->from) - begin(one->from));
        const z3::expr ended = periods(begin(now->from) - end(one->to));
        sum = sum + context_.int_val(one->amount) * (begun - ended);
      }
      solver_.add(sum <= context_.int_val(problem_.limits[device]));
    }
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
  int wholes_ = 0;
  std::vector<int> begins_;
};

int latency_of(const Repeating& problem, const std::vector<int>& begins) {
  int latency = 0;
  for (std::size_t b = 0; b < begins.size(); ++b)
    latency = std::max(latency, begins[b] + problem.blocks[b].span);
  return latency;
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

/// The shortest latency of a period that has a schedule: what lies between that of the schedule that
/// is known and what is proved to be too short is halved.
void shorten(Question& question, const Repeating& problem, Repetend& found, int least) {
  found.begins = question.begins();
  found.latency = latency_of(problem, found.begins);
  bool proved = true;
  int low = least;
  while (low < found.latency) {
    const int middle = low + (found.latency - low) / 2;
    const z3::check_result result = question.ask(middle);
    if (result == z3::sat) {
      found.begins = question.begins();
      found.latency = latency_of(problem, found.begins);
    } else {
      proved = proved && result == z3::unsat;
      if (proved) least = middle + 1;
      low = middle + 1;
    }
  }
  found.least_latency = proved ? found.latency : least;
}

/// The longest way through a micro-batch's blocks, each of which is listed after those before it or
/// not.
int longest_way(const Repeating& problem) {
  std::vector<int> ends(problem.blocks.size());
  for (std::size_t round = 0; round <= problem.blocks.size(); ++round) {
    bool longer = false;
    for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
      int begin = 0;
      for (const int before : problem.blocks[b].after) begin = std::max(begin, ends[before]);
      longer = longer || begin + problem.blocks[b].span > ends[b];
      ends[b] = begin + problem.blocks[b].span;
    }
    if (!longer) return *std::ranges::max_element(ends);
  }
  throw InputError("", "", "blocks without a cycle", "one");
}

}  // namespace

std::optional<Repetend> best_repetend(const Repeating& problem, const RepetendOptions& options) {
  expects(!problem.blocks.empty(), "a micro-batch has a block");
  const int least = longest_way(problem);
  const int blocks = static_cast<int>(problem.blocks.size());
  // One micro-batch after another is the longest period that could be of use.
  const int longest = whole_work(problem);
  Repetend found{.least_period = work_of_busiest(problem)};
  for (found.period = found.least_period; found.period <= longest; ++found.period) {
    Question question(problem, found.period, options.patience);
    // Between a block and the next there is no reason to wait for a whole period.
    const int slowest = longest + blocks * (found.period - 1);
    const z3::check_result result = question.ask(slowest);
    if (result == z3::unsat && found.least_period == found.period) ++found.least_period;
    if (result != z3::sat) continue;
    shorten(question, problem, found, least);
    found.peaks = peaks_of(problem, found);
    return found;
  }
  return std::nullopt;
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
