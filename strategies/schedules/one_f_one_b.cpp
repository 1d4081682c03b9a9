// 1F1B (PipeDream-flush): after a warm-up every stage alternates forward and backward cells.
#include "strategies/schedules/rules.hpp"

namespace stratagem::strategies {

/// Bubble (p-1)(F+B) as GPipe's; min(M, p-i) micro-batches in flight at stage i. With one stage
/// this is gradient accumulation. Source: Narayanan et al., PipeDream-2BW, ICML 2021; constraints
/// as in nnScaler's Table 4, with stages counted from 0.
void one_f_one_b(Plan& plan) {
  const Lets ofst = {{"ofst", "S-1-i"}};
  plan.order({.before = "F(i, m)", .after = "F(i, m+1)"});
  plan.order({.before = "B(i, m)", .after = "B(i, m+1)"});
  plan.order({.before = "F(i, m+ofst)", .after = "B(i, m)", .let = ofst});
  plan.order({.before = "B(i, m)", .after = "F(i, m+ofst+1)", .let = ofst});
  // Too few micro-batches for a steady phase.
  plan.order({.before = "F(i, M-1)", .after = "B(i, 0)", .let = ofst, .where = "M <= ofst"});
}

}  // namespace stratagem::strategies
