// BPipe: 1F1B whose early stages lend activations to the late ones.
#include <algorithm>
#include <set>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/one_f_one_b.hpp"

namespace stratagem::strategies {
namespace {

/// Walks stage s's cells of 1F1B and lends the newest micro-batch wherever the next cell would take
/// in one more than `most`.
void balance(const Plan& plan, int s, int most, Keep& lent) {
  const auto stages = static_cast<int>(plan.stages.size());
  const int warm_up = std::min(plan.micro_batches, stages - 1 - s);
  std::set<int> here;
  std::set<int> away;
  int forward = 0;
  int backward = 0;
  while (backward < plan.micro_batches) {
    const bool forward_next = forward < plan.micro_batches && forward <= backward + warm_up;
    const bool takes_in = forward_next || away.contains(backward);
    if (takes_in && static_cast<int>(here.size()) == most) {
      const int newest = *here.rbegin();
      lent.cells.emplace_back(s, newest);
      here.erase(newest);
      away.insert(newest);
    }
    if (forward_next) {
      here.insert(forward++);
    } else {
      away.erase(backward);
      here.erase(backward++);
    }
  }
}

/// Stages s and p-1-s of 1F1B hold p+1 micro-batches together; a stage lends what it holds above
/// half of that. Where links and stages are equal, s lends to p-1-s, which has the most idle memory
/// left, so that no stage holds more than ceil((p+2)/2). A micro-batch leaves right after its
/// forward cell and comes back right before its backward cell, which waits for it: an
/// implementation that fetches it a cell earlier hides that. Source: Kim et al., BPipe, ICML 2023,
/// section 3.
void order_bpipe(Plan& plan) {
  order_one_f_one_b(plan);
  const auto stages = static_cast<int>(plan.stages.size());
  Keep lent{.what = Keep::What::activations, .where = Keep::Where::peers};
  for (int s = 0; s < stages; ++s) balance(plan, s, (stages + 3) / 2, lent);
  if (!lent.cells.empty()) plan.residency.keep(std::move(lent));
}

}  // namespace

Schedule bpipe() {
  return {
      .name = "bpipe",
      .summary =
          "1F1B whose early stages lend activations to the late ones: about half as many in flight",
      .orders = &order_bpipe};
}

}  // namespace stratagem::strategies
