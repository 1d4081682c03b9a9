// PipeDream: 1F1B without a flush, and what weights its micro-batches read.
#include "strategies/schedules/rules.hpp"

namespace stratagem::strategies {
namespace {

/// Where stages share parameters (tied embeddings), their gradients are summed before either steps, so
/// that the last stage waits for the first in every iteration: the plan is right, and hardly faster
/// than one with a flush.
///
/// The orders of 1F1B hold for micro-batches counted through all iterations, so that a stage never
/// drains: no bubble in the steady state.
void without_flush(Plan& plan, Updates::Version version) {
  one_f_one_b(plan);
  plan.updates = {.flush = false, .version = version};
}

}  // namespace

/// An update after every iteration (with one micro-batch an iteration, after every micro-batch).
/// With one micro-batch an iteration, F of iteration i on stage s of p reads version
/// max(0, i - (p-1-s)); its backward cell reads the same, so p-s versions are kept. Source: Narayanan
/// et al., PipeDream, SOSP 2019, section 3.3.
void pipedream(Plan& plan) { without_flush(plan, Updates::Version::latest); }

/// Every stage reads the version that the first stage read: max(0, i - (p-1)). Newer versions wait
/// until the micro-batches that read them arrive, so all p are kept on every stage. Source: the same.
void pipedream_vertical(Plan& plan) { without_flush(plan, Updates::Version::vertical); }

/// All micro-batches of iteration i read version max(0, i-1) on every stage, two versions are kept;
/// needs at least as many micro-batches an iteration as stages. Source: Narayanan et al.,
/// PipeDream-2BW, ICML 2021, section 3.1.
void pipedream_2bw(Plan& plan) { without_flush(plan, Updates::Version::previous); }

}  // namespace stratagem::strategies
