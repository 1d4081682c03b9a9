// The recomputed groups of a plan, for one segment: what is kept, and what runs again where.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lowering/stages/segment.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Consecutive segments that run again together, each in a block of its own. A single segment
/// counts if groups lie within it; their operators run a third time.
struct SegmentsTogether {
  int first = 0;
  int last = 0;
  [[nodiscard]] bool contains(int segment) const { return first <= segment && segment <= last; }
};

/// Forward operators of a segment that run again together.
struct RecomputedGroup {
  std::size_t number = 0;              ///< in the plan
  std::vector<model::OpId> operators;  ///< in order
  std::set<model::TensorId> inputs;    ///< activations that they read, and that are kept for them
  std::set<model::TensorId> dropped;   ///< those that are computed again for them
  std::set<int> needs;                 ///< groups that must run first, since they compute `dropped`
  /// The tensors that only the group's own gradients need; of a group that drops its results what
  /// any gradient of the segment needs, or another group. They are freed in the forward pass and
  /// live again from the second run to their last reader, so they never live at the same time as
  /// another group's.
  std::set<model::TensorId> inner;
};

/// The groups of one segment. A group whose gradients need only its inputs does not run again and
/// is left out. If several segments run again together, what one hands to the next is recomputed,
/// and each keeps from its second run what its backward pass needs, less what groups within it
/// compute once more. Source: Chen et al., Training
/// Deep Nets with Sublinear Memory Cost, arXiv:1604.06174.
class Recomputation {
 public:
  /// `all`: the facts of every segment, of which this is for one.
  Recomputation(const strategies::Plan& plan, const std::vector<SegmentFacts>& all, int segment);

  [[nodiscard]] const std::vector<RecomputedGroup>& groups() const { return groups_; }
  /// The group of a forward operator, -1 if it does not run again.
  [[nodiscard]] int group_of(model::OpId forward_op) const;
  /// Is a tensor computed again?
  [[nodiscard]] bool inner(model::TensorId tensor) const { return inner_.contains(tensor); }
  /// The groups of which an operator reads inner tensors, each behind those that it needs.
  [[nodiscard]] std::vector<int> needed_by(const model::Operator& op) const;
  /// The groups that have run again before a backward block begins: for a W alone those of its B.
  [[nodiscard]] std::set<int> run_before(bool weight_alone) const;

  /// The segments that run again together with this one; nullopt if there are none.
  [[nodiscard]] const std::optional<SegmentsTogether>& together() const { return together_; }
  /// Does one of the segments that run again together compute a tensor for this one?
  [[nodiscard]] bool handed_on(model::TensorId activation_in) const {
    return handed_on_.contains(activation_in);
  }
  /// A key that differs between segments with different roles in such groups.
  [[nodiscard]] std::string key(const SegmentFacts& facts) const;

  /// Activations that the forward pass keeps for the backward pass.
  [[nodiscard]] const std::set<model::TensorId>& kept() const { return kept_; }
  /// The same of the second run, in a block of its own.
  [[nodiscard]] const std::set<model::TensorId>& kept_again() const { return kept_again_; }
  /// Is a tensor read by what runs again, and not computed by it?
  [[nodiscard]] bool checkpoint(model::TensorId tensor) const { return inputs_.contains(tensor); }
  /// What B and W read if they are split: the sets of the segment's facts, and inputs of the groups
  /// that run in each.
  [[nodiscard]] const std::set<model::TensorId>& read_by_input() const { return read_by_input_; }
  [[nodiscard]] const std::set<model::TensorId>& read_by_weight() const { return read_by_weight_; }
  /// The memory category of a tensor that a later block reads.
  [[nodiscard]] program::Category category_of(const model::Graph& graph,
                                              model::TensorId tensor) const;

 private:
  void find_together(const strategies::Plan& plan, const std::vector<SegmentFacts>& all,
                     int segment);
  using Numbers = std::set<std::size_t>;  ///< of groups in the plan

  void find_groups(const strategies::Plan& plan, const SegmentFacts& facts);
  void note_groups(const strategies::Plan& plan, const SegmentFacts& facts, const Numbers& idle);
  void connect_groups(const strategies::Plan& plan, const std::set<model::TensorId>& dropped);
  [[nodiscard]] Numbers idle_groups(const model::Graph& graph, const SegmentFacts& facts) const;
  void add_needed(int group, std::vector<int>& needed) const;
  void find_kept(const model::Graph& graph, const SegmentFacts& facts);

  std::optional<SegmentsTogether> together_;
  std::set<model::TensorId> handed_on_;
  std::set<model::TensorId> kept_again_;
  std::vector<RecomputedGroup> groups_;
  std::map<model::OpId, int> group_of_;
  std::set<model::TensorId> inner_;
  std::set<model::TensorId> read_by_groups_;
  std::set<model::TensorId> inputs_;  ///< what the first run keeps so that the rest can run again
  std::set<model::TensorId> kept_;
  std::set<model::TensorId> read_by_input_;
  std::set<model::TensorId> read_by_weight_;
  std::set<int> run_in_input_;  ///< groups that B needs; the others run in W
};

}  // namespace stratagem::lowering
