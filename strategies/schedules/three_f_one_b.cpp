// 3F1B: three forward passes and one backward pass per micro-batch, interleaved so that passes of
// consecutive micro-batches fill each other's bubbles.
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {
namespace {

/// In step t stage i runs F1(t+2), F2(t+1), F3(t), B(t-ofst), ofst = S-1-i, as far as they exist.
/// Without a bubble in the steady state while S f <= 3f + b, since the next pass of a micro-batch
/// on the first stage waits for the one before it on the last. Source: Lin et al., nnScaler, OSDI
/// 2024, section 3 and Table 7 (there ofst = S-i, with stages counted from 1).
void order_three_f_one_b(Plan& plan) {
  const decltype(OrderRule::let) ofst = {{"ofst", "S-1-i"}};
  const auto order = [&](const char* before, const char* after) {
    const bool shifted = std::string(before + std::string(after)).find("ofst") != std::string::npos;
    plan.order(
        {.before = before, .after = after, .let = shifted ? ofst : decltype(OrderRule::let){}});
  };
  for (const char* pass : {"F1", "F2", "F3", "B"}) {
    const std::string name = pass;
    plan.order({.before = name + "(i, m)", .after = name + "(i, m+1)"});
  }
  // Within a step.
  order("F1(i, m+2)", "F2(i, m+1)");
  order("F2(i, m+1)", "F3(i, m)");
  order("F3(i, m+ofst)", "B(i, m)");
  // From a step to the next, where the last or the first of a step are missing too.
  order("B(i, m)", "F1(i, m+ofst+3)");
  order("B(i, m)", "F2(i, m+ofst+2)");
  order("B(i, m)", "F3(i, m+ofst+1)");
  order("F3(i, m)", "F1(i, m+3)");
  order("F3(i, m)", "F2(i, m+2)");
  order("F2(i, m)", "F1(i, m+2)");
  // Too few micro-batches for the last forward and the first backward cell to share a step.
  plan.order({.before = "F3(i, M-1)", .after = "B(i, 0)", .let = ofst, .where = "M <= ofst"});
}

}  // namespace

Schedule three_f_one_b() {
  return {.name = "3f1b",
          .summary = "three forward passes and one backward pass of each micro-batch, interleaved",
          .orders = &order_three_f_one_b,
          .forward_passes = 3};
}

}  // namespace stratagem::strategies
