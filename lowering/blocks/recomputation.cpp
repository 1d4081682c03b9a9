// Separates the tensors that a group computes for others from those that only its own gradients
// read.
#include "lowering/blocks/recomputation.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using program::Category;
using strategies::Plan;

namespace {

using model::Graph;
using model::Operator;
using model::OpId;
using model::TensorId;

bool contains(const std::vector<OpId>& ops, OpId id) {
  return std::ranges::find(ops, id) != ops.end();
}

/// Tensors that operators of a group compute.
std::set<TensorId> outputs_of(const Graph& graph, const std::vector<OpId>& group) {
  std::set<TensorId> outputs;
  for (const OpId id : group) {
    outputs.insert(graph.operators[id].outputs.begin(), graph.operators[id].outputs.end());
  }
  return outputs;
}

std::set<TensorId> inputs_of(const Graph& graph, const std::vector<OpId>& group) {
  const std::set<TensorId> own = outputs_of(graph, group);
  std::set<TensorId> inputs;
  for (const OpId id : group) {
    for (const TensorId tensor : graph.operators[id].inputs) {
      const model::Role role = graph.tensors[tensor].role;
      const bool data = role != model::Role::parameter && !model::is_given(role);
      if (data && !own.contains(tensor)) inputs.insert(tensor);
    }
  }
  return inputs;
}

/// Of a group's outputs: those that gradients of its own operators read and no other's.
std::set<TensorId> read_by_own_gradients(const Graph& graph, const SegmentFacts& facts,
                                         const std::vector<OpId>& group) {
  const std::set<TensorId> own = outputs_of(graph, group);
  std::set<TensorId> inner;
  std::set<TensorId> elsewhere;
  for (const OpId id : graph.segments[facts.segment].backward) {
    const Operator& op = graph.operators[id];
    for (const TensorId tensor : op.inputs) {
      if (own.contains(tensor)) (contains(group, op.forward) ? inner : elsewhere).insert(tensor);
    }
  }
  std::erase_if(inner, [&](TensorId tensor) { return elsewhere.contains(tensor); });
  return inner;
}

/// Of the outputs of a group that drops them: those that any gradient of the segment reads, or an
/// operator of another group that is not idle, but for what leaves the segment.
std::set<TensorId> read_again(const strategies::Plan& plan, const SegmentFacts& facts,
                              const std::vector<OpId>& group, const std::set<std::size_t>& idle) {
  const Graph& graph = plan.graph();
  const std::set<TensorId> own = outputs_of(graph, group);
  std::set<TensorId> inner;
  const auto note = [&](OpId reader) {
    for (const TensorId tensor : graph.operators[reader].inputs) {
      if (own.contains(tensor)) inner.insert(tensor);
    }
  };
  for (const OpId id : graph.segments[facts.segment].backward) note(id);
  for (const OpId id : graph.segments[facts.segment].forward) {
    const int part = plan.groups_of(id).part;
    if (part >= 0 && !idle.contains(part) && !contains(group, id)) note(id);
  }
  std::erase_if(inner, [&](TensorId tensor) {
    return std::ranges::count(facts.activations_out, tensor) > 0;
  });
  return inner;
}

/// Groups that drop their results cannot need each other.
void refuse_circles(const Plan& plan, const std::vector<RecomputedGroup>& groups) {
  std::set<int> open;
  std::set<int> done;
  const std::function<void(int)> visit = [&](int group) {
    if (done.contains(group)) return;
    if (!open.insert(group).second) {
      const std::size_t number = groups[group].number;
      const std::string said = number < plan.said.again.size() ? plan.said.again[number] : "";
      throw InputError(
          "", said, "groups that drop their results and do not need each other",
          "a circle with " + plan.graph().operators[groups[group].operators.front()].name);
    }
    for (const int other : groups[group].needs) visit(other);
    done.insert(group);
  };
  for (std::size_t group = 0; group < groups.size(); ++group) visit(static_cast<int>(group));
}

}  // namespace

Recomputation::Recomputation(const Plan& plan, const std::vector<SegmentFacts>& all, int segment)
    : read_by_input_(all[segment].read_by_input), read_by_weight_(all[segment].read_by_weight) {
  find_together(plan, all, segment);
  find_groups(plan, all[segment]);
  find_kept(plan.graph(), all[segment]);
}

/// Segments before the first that is trained have no backward pass, but run again for those after
/// them.
void Recomputation::find_together(const Plan& plan, const std::vector<SegmentFacts>& all,
                                  int segment) {
  const Graph& graph = plan.graph();
  const std::vector<OpId>& forward = graph.segments[segment].forward;
  const int group = forward.empty() ? -1 : plan.groups_of(forward.front()).whole;
  if (group < 0) return;
  const auto [first, last] = strategies::segment_range(graph, plan.recomputed()[group]);
  const bool has_parts =
      std::ranges::any_of(forward, [&](OpId id) { return plan.groups_of(id).part >= 0; });
  if ((first == last && !has_parts) || graph.segments[last].backward.empty()) return;
  together_ = {first, last};
  for (const TensorId tensor : all[segment].activations_in) {
    bool inside = false;
    for (int other = first; other < segment; ++other)
      inside |= std::ranges::count(all[other].activations_out, tensor) > 0;
    (inside ? handed_on_ : inputs_).insert(tensor);
  }
  kept_ = inputs_;
}

std::string Recomputation::key(const SegmentFacts& facts) const {
  if (!together_) return "";
  std::string key = facts.segment == together_->first ? "first" : "next";
  for (const TensorId tensor : inputs_) key += "," + std::to_string(facts.place.at(tensor));
  return key;
}

/// A group that no gradient needs, not even by way of other groups, does not run again.
void Recomputation::find_groups(const Plan& plan, const SegmentFacts& facts) {
  Numbers idle;
  do {
    note_groups(plan, facts, idle);
    const Numbers more = idle_groups(plan.graph(), facts);
    if (more.empty()) return;
    idle.insert(more.begin(), more.end());
  } while (true);
}

void Recomputation::note_groups(const Plan& plan, const SegmentFacts& facts, const Numbers& idle) {
  const Graph& graph = plan.graph();
  groups_.clear();
  group_of_.clear();
  std::set<TensorId> dropped;
  for (std::size_t number = 0; number < plan.recomputed().size(); ++number) {
    const std::vector<OpId>& group = plan.recomputed()[number];
    if (idle.contains(number) ||
        strategies::segment_range(graph, group) != std::pair(facts.segment, facts.segment))
      continue;
    const bool whole = plan.groups_of(group.front()).whole == static_cast<int>(number);
    if (whole && together_) continue;
    const bool drops = plan.drops_results(number);
    const std::set<TensorId> inner =
        drops ? read_again(plan, facts, group, idle) : read_by_own_gradients(graph, facts, group);
    if (inner.empty()) continue;
    for (const OpId id : group) group_of_[id] = static_cast<int>(groups_.size());
    groups_.push_back({.number = number,
                       .operators = group,
                       .inputs = inputs_of(graph, group),
                       .dropped = {},
                       .needs = {},
                       .inner = inner});
    if (drops) dropped.insert(inner.begin(), inner.end());
  }
  connect_groups(plan, dropped);
}

/// What one group reads of another is kept for it, unless that one drops its results.
void Recomputation::connect_groups(const Plan& plan, const std::set<TensorId>& dropped) {
  read_by_groups_.clear();
  inner_.clear();
  for (RecomputedGroup& group : groups_) {
    std::ranges::set_intersection(group.inputs, dropped,
                                  std::inserter(group.dropped, group.dropped.end()));
    for (const TensorId tensor : group.dropped) group.inputs.erase(tensor);
    for (std::size_t other = 0; other < groups_.size(); ++other) {
      const auto computes = [&](TensorId tensor) { return groups_[other].inner.contains(tensor); };
      if (std::ranges::any_of(group.dropped, computes)) group.needs.insert(static_cast<int>(other));
    }
    read_by_groups_.insert(group.inputs.begin(), group.inputs.end());
  }
  for (RecomputedGroup& group : groups_) {
    std::erase_if(group.inner, [&](TensorId tensor) { return read_by_groups_.contains(tensor); });
    inner_.insert(group.inner.begin(), group.inner.end());
  }
  refuse_circles(plan, groups_);
}

Recomputation::Numbers Recomputation::idle_groups(const Graph& graph,
                                                  const SegmentFacts& facts) const {
  Numbers idle;
  for (const RecomputedGroup& group : groups_) idle.insert(group.number);
  for (const OpId id : graph.segments[facts.segment].backward) {
    for (const int group : needed_by(graph.operators[id])) idle.erase(groups_[group].number);
  }
  return idle;
}

void Recomputation::find_kept(const Graph& graph, const SegmentFacts& facts) {
  std::set<TensorId>& kept = together_ ? kept_again_ : kept_;
  std::ranges::set_difference(facts.kept, inner_, std::inserter(kept, kept.end()));
  kept.insert(read_by_groups_.begin(), read_by_groups_.end());
  if (!together_) inputs_ = read_by_groups_;
  for (const OpId id : facts.input_gradients) {
    const std::vector<int> needed = needed_by(graph.operators[id]);
    run_in_input_.insert(needed.begin(), needed.end());
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const bool in_input = run_in_input_.contains(static_cast<int>(group));
    std::set<TensorId>& read = in_input ? read_by_input_ : read_by_weight_;
    read.insert(groups_[group].inputs.begin(), groups_[group].inputs.end());
    if (in_input) continue;
    // B has computed it again, and leaves it.
    for (const TensorId tensor : groups_[group].dropped) {
      const auto left = [&](int other) { return groups_[other].inner.contains(tensor); };
      if (std::ranges::any_of(run_in_input_, left)) read.insert(tensor);
    }
  }
}

int Recomputation::group_of(OpId forward_op) const {
  const auto found = group_of_.find(forward_op);
  return found == group_of_.end() ? -1 : found->second;
}

std::vector<int> Recomputation::needed_by(const Operator& op) const {
  std::vector<int> needed;
  for (const TensorId tensor : op.inputs) {
    if (!inner_.contains(tensor)) continue;
    const auto computes = [&](const RecomputedGroup& group) {
      return group.inner.contains(tensor);
    };
    add_needed(static_cast<int>(std::ranges::find_if(groups_, computes) - groups_.begin()), needed);
  }
  return needed;
}

void Recomputation::add_needed(int group, std::vector<int>& needed) const {
  if (std::ranges::count(needed, group) > 0) return;
  for (const int other : groups_[group].needs) add_needed(other, needed);
  needed.push_back(group);
}

std::set<int> Recomputation::run_before(bool weight_alone) const {
  return weight_alone ? run_in_input_ : std::set<int>{};
}

Category Recomputation::category_of(const Graph& graph, TensorId tensor) const {
  if (graph.tensors[tensor].role == model::Role::statistic) return Category::statistics;
  return inputs_.contains(tensor) ? Category::checkpoints : Category::activations;
}

}  // namespace stratagem::lowering
