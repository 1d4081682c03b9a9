// GPipe: every stage runs all forward cells, then all backward cells.
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {
namespace {

/// Bubble (p-1)(F+B); M micro-batches in flight. Source: Huang et al., GPipe, NeurIPS 2019.
void order_gpipe(Plan& plan) {
  plan.order({.before = "F(i, m)", .after = "F(i, m+1)"});
  plan.order({.before = "F(i, M-1)", .after = "B(i, 0)"});
  plan.order({.before = "B(i, m)", .after = "B(i, m+1)"});
}

}  // namespace

Schedule gpipe() {
  return {.name = "gpipe",
          .summary = "all forward cells, then all backward cells",
          .orders = &order_gpipe};
}

}  // namespace stratagem::strategies
