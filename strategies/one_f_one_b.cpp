// 1F1B (PipeDream-flush): after a warm-up every stage alternates forward and backward cells.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// For stage i of p and ofst = p-1-i, as far as the micro-batches exist:
///   (f,i,m) ≺ (f,i,m+1),  (b,i,m) ≺ (b,i,m+1),  (f,i,m+ofst) ≺ (b,i,m),  (b,i,m) ≺ (f,i,m+ofst+1)
/// Bubble (p-1)(F+B) as GPipe's; min(M, p-i) micro-batches in flight at stage i. With one stage
/// this is gradient accumulation. Source: Narayanan et al., PipeDream-2BW, ICML 2021; constraints
/// as in nnScaler's Table 4.
void one_f_one_b(Plan& plan) {
  const auto stages = static_cast<int>(plan.stages.size());
  for (int stage = 0; stage < stages; ++stage) {
    const int ofst = stages - 1 - stage;
    for (int m = 0; m < plan.micro_batches; ++m) {
      const Cell forward{stage, m, CellPass::forward};
      const Cell backward{stage, m, CellPass::backward};
      if (m + 1 < plan.micro_batches) {
        plan.order(forward, {stage, m + 1, CellPass::forward});
        plan.order(backward, {stage, m + 1, CellPass::backward});
      }
      if (m + ofst < plan.micro_batches) plan.order({stage, m + ofst, CellPass::forward}, backward);
      if (m + ofst + 1 < plan.micro_batches)
        plan.order(backward, {stage, m + ofst + 1, CellPass::forward});
    }
    const bool warm_up_only = plan.micro_batches <= ofst;  // too few for a steady phase
    if (warm_up_only) {
      plan.order({stage, plan.micro_batches - 1, CellPass::forward},
                 {stage, 0, CellPass::backward});
    }
  }
}

}  // namespace stratagem::strategies
