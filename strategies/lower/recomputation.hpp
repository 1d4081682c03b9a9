// What the recomputed groups of a plan mean for one segment: what is kept, and what runs again
// where.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "strategies/lower/segment.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Forward operators that run again together.
struct RecomputedGroup {
  std::vector<model::OpId> operators;  ///< in order
  std::set<model::TensorId> inputs;    ///< activations that they read and do not compute
  /// What they compute for their own gradients alone: it dies in the forward pass, lives again from
  /// the second run to its last reader, and so is never alive together with another group's.
  std::set<model::TensorId> inner;
};

/// The groups of one segment. One whose gradients need nothing but its inputs does not run again
/// and is left out. Source: Chen et al., Training Deep Nets with Sublinear Memory Cost,
/// arXiv:1604.06174.
class Recomputation {
 public:
  Recomputation(const Plan& plan, const SegmentFacts& facts);

  [[nodiscard]] const std::vector<RecomputedGroup>& groups() const { return groups_; }
  /// The group of a forward operator, -1 if it does not run again.
  [[nodiscard]] int group_of(model::OpId forward_op) const;
  /// Is a tensor computed again?
  [[nodiscard]] bool inner(model::TensorId tensor) const { return inner_.contains(tensor); }
  /// The groups of which an operator reads inner tensors, ascending.
  [[nodiscard]] std::set<int> needed_by(const model::Operator& op) const;
  /// The groups that have run again before a backward block begins: for a W alone those of its B.
  [[nodiscard]] std::set<int> run_before(bool weight_alone) const;

  /// Activations that the forward pass keeps for the backward pass.
  [[nodiscard]] const std::set<model::TensorId>& kept() const { return kept_; }
  /// What B and W read where the two are split: facts' sets, and inputs of the groups that run in
  /// each.
  [[nodiscard]] const std::set<model::TensorId>& read_by_input() const { return read_by_input_; }
  [[nodiscard]] const std::set<model::TensorId>& read_by_weight() const { return read_by_weight_; }
  /// As what a tensor that a later block reads is counted.
  [[nodiscard]] Category category_of(const model::Graph& graph, model::TensorId tensor) const;

 private:
  void find_groups(const Plan& plan, const SegmentFacts& facts);
  void find_kept(const model::Graph& graph, const SegmentFacts& facts);

  std::vector<RecomputedGroup> groups_;
  std::map<model::OpId, int> group_of_;
  std::set<model::TensorId> inner_;
  std::set<model::TensorId> inputs_;  ///< of all groups
  std::set<model::TensorId> kept_;
  std::set<model::TensorId> read_by_input_;
  std::set<model::TensorId> read_by_weight_;
  std::set<int> run_in_input_;  ///< groups that B needs; the others run in W
};

}  // namespace stratagem::strategies
