// Weights that are not whole, or not on the device, brought there ahead of the segments that read
// them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lowering/residency/weight_uses.hpp"

namespace stratagem::lowering {

/// The gathers of parameters that stepped in parts from the parameters of which ranks step a part
/// (`moves`, which name tensors as calls of the block do), each into what the devices keep of it.
/// For a `purpose` as of Groups::along. Adds nothing without any.
void append_step_gathers(program::Block& block, const SequenceContext& context,
                         program::Stream stream, int purpose, const std::vector<WeightMove>& moves);

/// All moves of weights for runs (WeightUses). If parameters are on the host, each gather follows a
/// copy of the shards from there, or is that copy if nothing divides them. If parameters are on
/// drives, that copy follows a read of as many bytes into host memory, on a stream of its own; with
/// `ahead` above 0 the next segments' reads run meanwhile. What is first in an iteration follows
/// the steps of the one before. A weight that is whole already, for a run before, is gathered again
/// when it is so no more: so no buffer stays from the last forward pass to the first backward pass,
/// unless the plan keeps it.
class Gathers : public AheadOfRuns {
 public:
  /// `runs`: all of an iteration, in order.
  Gathers(const SequenceContext& context, SequenceDraft& draft,
          const std::vector<SegmentRun>& runs);

  /// Call before the call of any run, and after it.
  void before(const SegmentRun& run);
  void after(const SegmentRun& run, int call);

 private:
  /// What is whole: a weight, of a micro-batch and slice unless it is kept for all passes.
  using Whole = std::tuple<model::TensorId, int, int>;

  Gathers(const SequenceContext& context, SequenceDraft& draft, WeightUses uses);
  [[nodiscard]] bool is_next(const SegmentRun& run) const;
  [[nodiscard]] Whole whole(const SegmentRun& run, int place) const;
  [[nodiscard]] bool may_issue(std::size_t index) const override;
  Written issue(std::size_t index) override;
  void connect(std::size_t index, int call) override;
  void wait_for_device(int call);
  void leave(const SegmentRun& run, const std::vector<WeightLeaving>& leavings);
  [[nodiscard]] program::Block gather_block(std::size_t index) const;
  int append_fetch(program::Block& block, std::size_t index) const;
  std::optional<int> add_part(program::Block& block, int fetch, const WeightMove& move,
                              const std::string& name) const;

  WeightUses uses_;
  bool kept_;  ///< from pass to pass
  std::set<Whole> whole_;
  std::map<model::TensorId, Written> parted_;  ///< what left parts of weights for the next pass
};

}  // namespace stratagem::lowering
