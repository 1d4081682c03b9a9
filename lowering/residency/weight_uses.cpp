// Goes through an iteration's runs, and notes the first and the last use of every weight.
#include "lowering/residency/weight_uses.hpp"

#include <set>

#include "base/input_error.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {
namespace {

using model::TensorId;
using strategies::Keep;
/// Micro-batch, slice, and repeat of the forward pass: backward passes are of the last one.
using Owner = std::tuple<int, int, int>;

class UsesOfWeights {
 public:
  UsesOfWeights(const SequenceContext& context, int device_class,
                const std::vector<SegmentRun>& runs)
      : c_(context),
        held_(context.parameters.on(device_class)),
        kept_(kept_for_passes(context.plan)),
        before_first_use_(gathers_before_first_use(context.plan)) {
    for (std::size_t i = 0; kept_ && i < runs.size(); ++i) {
      for (const int place : runs[i].block->lowered.gathered)
        last_[{parameter(runs[i], place), owner_of(runs[i])}] = key_of(runs[i]);
    }
  }

  void add(const SegmentRun& run) {
    std::vector<WeightMove> moves;
    if (before_first_use_) use_first(run, moves);
    for (const int place : run.block->lowered.gathered) use(run, place, moves);
    if (moves.empty()) return;
    uses_.runs.push_back(run);
    uses_.moves.push_back(std::move(moves));
  }

  WeightUses finish() { return std::move(uses_); }

 private:
  [[nodiscard]] TensorId parameter(const SegmentRun& run, int place) const {
    return c_.stages.facts(run.segment).tensors[place];
  }

  [[nodiscard]] Owner owner_of(const SegmentRun& run) const {
    const placement::Cell& cell = run.of->cell;
    const bool forward = cell.pass == placement::CellPass::forward;
    return {cell.micro_batch, cell.slice,
            forward ? cell.repeat : c_.plan.graph().forward_repeats - 1};
  }

  /// The first run that reads a weight after its step.
  void use_first(const SegmentRun& run, std::vector<WeightMove>& moves) {
    for (const auto& [place, layout] : run.block->lowered.parameters) {
      const TensorId weight = parameter(run, place);
      const LocalHolding& local = held_.at(weight);
      const bool trained = c_.plan.graph().gradient_of[weight] >= 0;
      if (trained && local.steps_in_parts() && stepped_.insert(weight).second)
        moves.push_back({WeightMove::From::step, weight, place, &local});
    }
  }

  /// A run reads a weight that was gathered for it, or for an earlier one of the micro-batch.
  void use(const SegmentRun& run, int place, std::vector<WeightMove>& moves) {
    using From = WeightMove::From;
    const TensorId weight = parameter(run, place);
    const LocalHolding& local = held_.at(weight);
    const auto [there, first] = there_.emplace(weight, owner_of(run));
    if (first) moves.push_back({From::rest, weight, place, &local});
    if (!kept_) {
      there_.erase(there);
      return;
    }
    if (there->second != owner_of(run)) refuse();
    const bool in_parts = !local.between_passes.axes.empty();
    if (!first && in_parts) moves.push_back({From::passes, weight, place, &local});
    const bool ends = last_.at({weight, owner_of(run)}) == key_of(run);
    if (ends) there_.erase(there);
    if (ends || in_parts) uses_.leavings[key_of(run)].push_back({place, &local, ends});
  }

  [[noreturn]] void refuse() const {
    throw InputError("", c_.plan.residency.said({Keep::What::parameters}),
                     "micro-batches that follow one another on every device where parameters are "
                     "kept from pass to pass (\"between\": \"iterations\" keeps them for all)",
                     "micro-batches whose passes alternate");
  }

  const SequenceContext& c_;
  const std::map<TensorId, LocalHolding>& held_;
  bool kept_;
  bool before_first_use_;
  std::map<std::pair<TensorId, Owner>, RunKey> last_;  ///< the last run that uses it
  std::set<TensorId> stepped_;                         ///< gathered since their steps
  std::map<TensorId, Owner> there_;                    ///< weights that are kept, and for whom
  WeightUses uses_;
};

}  // namespace

WeightUses weight_uses(const SequenceContext& context, int device_class,
                       const std::vector<SegmentRun>& runs) {
  UsesOfWeights uses(context, device_class, runs);
  for (const SegmentRun& run : runs) uses.add(run);
  return uses.finish();
}

}  // namespace stratagem::lowering
