// Writes a periodic order of blocks as constraints on whole numbers, and asks Z3 for a solution.
#include "search/order/repetend_question.hpp"

#include <z3++.h>

#include <algorithm>
#include <string>

namespace stratagem::search {
namespace {

bool share_a_device(const Block& a, const Block& b) {
  return std::ranges::any_of(a.devices, [&](int device) {
    return std::ranges::find(b.devices, device) != b.devices.end();
  });
}

}  // namespace

/// Schedules with a period, as constraints on whole numbers. A block begins at
/// phase + period * round.
class Question::Solver {
 public:
  Solver(const Repeating& problem, int period, unsigned effort)
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
    for (int device = 0; device < static_cast<int>(problem.limits.size()); ++device) {
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

  Reply ask(int latency) {
    solver_.push();
    solver_.add(last_ <= latency);
    const z3::check_result result = solver_.check();
    if (result == z3::sat) read(solver_.get_model());
    solver_.pop();
    return result == z3::sat ? Reply::yes : result == z3::unsat ? Reply::no : Reply::gave_up;
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

Question::Question(const Repeating& problem, int period, unsigned effort)
    : solver_(std::make_unique<Solver>(problem, period, effort)) {}

Question::~Question() = default;

Question::Reply Question::ask(int latency) { return solver_->ask(latency); }

const std::vector<int>& Question::begins() const { return solver_->begins(); }

void Question::limit(int device) { solver_->limit(device); }

}  // namespace stratagem::search
