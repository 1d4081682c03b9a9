// GPipe: every stage runs all forward cells, then all backward cells.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// For every stage i: (f,i,m) ≺ (f,i,m+1), (f,i,M-1) ≺ (b,i,0), (b,i,m) ≺ (b,i,m+1).
/// Bubble (p-1)(F+B); M micro-batches in flight. Source: Huang et al., GPipe, NeurIPS 2019.
void gpipe(Plan& plan) {
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      for (int m = 0; m + 1 < plan.micro_batches; ++m)
        plan.order({stage, m, pass}, {stage, m + 1, pass});
    }
    plan.order({stage, plan.micro_batches - 1, CellPass::forward}, {stage, 0, CellPass::backward});
  }
}

}  // namespace stratagem::strategies
