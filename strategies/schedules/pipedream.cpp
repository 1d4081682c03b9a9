// PipeDream: 1F1B without a flush, and the version of the weights that each micro-batch reads.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/one_f_one_b.hpp"

namespace stratagem::strategies {
namespace {

/// Where stages share parameters (tied embeddings), their gradients are summed before either steps,
/// so that the last stage waits for the first in every iteration: the plan is right, and hardly
/// faster than one with a flush.
///
/// The orders of 1F1B hold for micro-batches counted through all iterations, so that a stage never
/// drains: no bubble in the steady state.
///
/// Stages may have copies that take turns (PipeDream's replicated stages, 1F1B-RR): micro-batch m
/// of an iteration on copy m mod r. Two readings had to be chosen. An iteration is M micro-batches,
/// of which every r divides M, and one update of all stages with the gradients of all copies;
/// PipeDream's runtime updates a stage after every r micro-batches, which is the same where r = M.
/// And the update is synchronous, as the all-reduce of its backward passes is: no copy goes on
/// before all have done the iteration. A copy that runs k = M / r micro-batches an iteration with a
/// warm-up of w keeps ceil(w / k) + 1 versions, PipeDream's w + 1 where k = 1.
///
/// The steady state of copies has no bubble in PipeDream's example, 2-1, but has one in
/// two cases. From an update copies go on together, so that r micro-batches reach the next stage at
/// once. Where all of them need longer to come back than the warm-up covers, w r (F + B) of a
/// single stage, copies wait once an iteration: (r + 1)(F + B) against r (F + B) on r-1-1. And
/// where copies stand between single stages (1-2-1), F and B of different micro-batches may always
/// reach a copy at the same time; no update is needed for that.
void without_flush(Plan& plan, Updates::Version version) {
  order_one_f_one_b(plan);
  plan.updates = {.flush = false, .version = version};
}

/// An update after every iteration (with one micro-batch an iteration, after every micro-batch).
/// With one micro-batch an iteration, F of iteration i on stage s of p reads version
/// max(0, i - (p-1-s)); its backward cell reads the same, so p-s versions are kept. Source:
/// Narayanan et al., PipeDream, SOSP 2019, section 3.3; copies: section 3.2.
void order_pipedream(Plan& plan) { without_flush(plan, Updates::Version::latest); }

/// Every stage reads the version that the first stage read: max(0, i - (p-1)). Newer versions wait
/// until the micro-batches that read them arrive, so all p are kept on every stage. Source: the
/// same.
void order_pipedream_vertical(Plan& plan) { without_flush(plan, Updates::Version::vertical); }

/// All micro-batches of iteration i read version max(0, i-1) on every stage, two versions are kept;
/// needs at least as many micro-batches an iteration as stages. Source: Narayanan et al.,
/// PipeDream-2BW, ICML 2021, section 3.1.
void order_pipedream_2bw(Plan& plan) { without_flush(plan, Updates::Version::previous); }

}  // namespace

Schedule pipedream() {
  return {.name = "pipedream",
          .summary = "1F1B without a flush: stages read the newest weights, old ones are kept",
          .orders = &order_pipedream,
          .takes_turns = true};
}

Schedule pipedream_vertical() {
  return {.name = "pipedream-vertical",
          .summary = "pipedream, all stages read the version that the first one read",
          .orders = &order_pipedream_vertical,
          .takes_turns = true};
}

Schedule pipedream_2bw() {
  return {.name = "pipedream-2bw",
          .summary = "1F1B without a flush on the weights of the iteration before: two versions",
          .orders = &order_pipedream_2bw,
          .takes_turns = true};
}

}  // namespace stratagem::strategies
