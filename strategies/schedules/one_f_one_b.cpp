// 1F1B (PipeDream-flush): after a warm-up every stage alternates forward and backward cells.
#include "strategies/schedules/one_f_one_b.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {
namespace {

/// 1F1B on a stage, or on all (`stage` is i), whose `copies` take turns: each runs every copies-th
/// micro-batch. `ahead` is how many micro-batches F is ahead of B, those of all copies counted.
void order_stage(Plan& plan, const std::string& stage, const std::string& ahead, int copies) {
  const decltype(OrderRule::let) ofst = {{"ofst", ahead}};
  const std::string n = std::to_string(copies);
  const auto cell = [&](const std::string& pass, const std::string& micro_batch) {
    return pass + "(" + stage + ", " + micro_batch + ")";
  };
  plan.order({.before = cell("F", "m"), .after = cell("F", "m+" + n)});
  plan.order({.before = cell("B", "m"), .after = cell("B", "m+" + n)});
  plan.order({.before = cell("F", "m+ofst"), .after = cell("B", "m"), .let = ofst});
  plan.order({.before = cell("B", "m"), .after = cell("F", "m+ofst+" + n), .let = ofst});
  // Too few micro-batches for a steady phase.
  for (int copy = 0; copy < copies; ++copy) {
    plan.order({.before = cell("F", "M-" + std::to_string(copies - copy)),
                .after = cell("B", std::to_string(copy)),
                .let = ofst,
                .where = "M <= ofst"});
  }
}

}  // namespace

int warm_up(const std::vector<int>& copies, int stage) {
  const int before = std::accumulate(copies.begin(), copies.begin() + stage, 0);
  const int ranks = std::accumulate(copies.begin(), copies.end(), 0);
  return (ranks - 1 - before) / copies[stage];
}

/// Bubble (p-1)(F+B) as GPipe's; min(M, p-i) micro-batches in flight at stage i. With one stage
/// this is gradient accumulation. Source: Narayanan et al., PipeDream-2BW, ICML 2021; constraints
/// as in nnScaler's Table 4, with stages counted from 0.
///
/// Where stages have copies that take turns (1F1B-RR), every copy of a stage alternates after a
/// warm-up of its own, see warm_up.
void order_one_f_one_b(Plan& plan) {
  const Copies& copies = plan.copies();
  if (copies.most() == 1) return order_stage(plan, "i", "S-1-i", 1);
  expects(copies.deal == Deal::turns, "1F1B orders copies that take turns");
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    const int n = copies.of(stage);
    const int ahead = n * warm_up(copies.of_stage, stage);
    order_stage(plan, std::to_string(stage), std::to_string(ahead), n);
  }
}

Schedule one_f_one_b() {
  return {
      .name = "1f1b",
      .summary =
          "one forward, one backward after a warm-up: at most as many micro-batches in flight as "
          "stages left",
      .orders = &order_one_f_one_b,
      .takes_turns = true};
}

}  // namespace stratagem::strategies
