// Derives the facts of a segment in three passes over its operators.
#include "lowering/stages/segment.hpp"

#include <algorithm>

#include "lowering/stages/operands.hpp"

namespace stratagem::lowering {
namespace {

using model::Graph;
using model::Operator;
using model::TensorId;

bool is_data(const Graph& graph, TensorId tensor) {
  const model::Role role = graph.tensors[tensor].role;
  return role != model::Role::parameter && !model::is_given(role);
}

/// By tensor: the segment whose forward operator computes it, -1 if none does.
std::vector<int> producers(const Graph& graph) {
  std::vector<int> result(graph.tensors.size(), -1);
  for (const Operator& op : graph.operators) {
    if (op.pass != model::Pass::forward) continue;
    for (const TensorId tensor : op.outputs) result[tensor] = op.segment;
  }
  return result;
}

void add_once(std::vector<TensorId>& list, TensorId tensor) {
  if (std::ranges::find(list, tensor) == list.end()) list.push_back(tensor);
}

void enter(SegmentFacts& facts, const std::vector<TensorId>& tensors) {
  for (const TensorId tensor : tensors) {
    if (facts.place.emplace(tensor, static_cast<int>(facts.tensors.size())).second)
      facts.tensors.push_back(tensor);
  }
}

void enter_tensors(SegmentFacts& facts, const Graph& graph) {
  const model::Segment& segment = graph.segments[facts.segment];
  for (const auto* ops : {&segment.forward, &segment.backward, &segment.optimizer}) {
    for (const model::OpId id : *ops) {
      enter(facts, graph.operators[id].inputs);
      enter(facts, graph.operators[id].outputs);
      facts.place_of_operator.emplace(id, static_cast<int>(facts.place_of_operator.size()));
    }
  }
}

void find_forward_borders(std::vector<SegmentFacts>& all, const Graph& graph,
                          const std::vector<int>& producer) {
  for (SegmentFacts& facts : all) {
    for (const model::OpId id : graph.segments[facts.segment].forward) {
      for (const TensorId tensor : graph.operators[id].inputs) {
        if (!is_data(graph, tensor) || producer[tensor] == facts.segment) continue;
        add_once(facts.activations_in, tensor);
        add_once(all[producer[tensor]].activations_out, tensor);
      }
    }
  }
}

void find_backward_borders(SegmentFacts& facts, const Graph& graph,
                           const std::vector<int>& producer) {
  std::set<TensorId> computed;
  for (const model::OpId id : graph.segments[facts.segment].backward) {
    const Operator& op = graph.operators[id];
    for (const TensorId tensor : op.inputs) {
      const model::Role role = graph.tensors[tensor].role;
      const bool forward_value = producer[tensor] >= 0;
      if (forward_value) {
        facts.kept.insert(tensor);
      } else if (role == model::Role::gradient && !computed.contains(tensor)) {
        add_once(facts.gradients_in, tensor);
      }
    }
    computed.insert(op.outputs.begin(), op.outputs.end());
  }
  for (const TensorId tensor : facts.activations_in) {
    if (graph.gradient_of[tensor] >= 0) facts.gradients_out.push_back(graph.gradient_of[tensor]);
  }
  enter(facts, facts.gradients_out);  // one that passes through unchanged is no operator's operand
}

void split_backward(SegmentFacts& facts, const Graph& graph) {
  const auto leaves = [&](TensorId tensor) {
    return std::ranges::find(facts.gradients_out, tensor) != facts.gradients_out.end();
  };
  for (const model::OpId id : graph.segments[facts.segment].backward) {
    const Operator& op = graph.operators[id];
    const bool deferred =
        op.pass == model::Pass::weight_gradient && std::ranges::none_of(op.inputs, leaves);
    (deferred ? facts.weight_gradients : facts.input_gradients).push_back(id);
    for (const TensorId tensor : op.inputs) {
      if (is_data(graph, tensor))
        (deferred ? facts.read_by_weight : facts.read_by_input).insert(tensor);
    }
  }
}

/// Which of the segment's operators run again together, as a part of it or with all others.
std::string groups_key(const strategies::Plan& plan, const SegmentFacts& facts) {
  std::string key;
  std::map<int, int> number;
  for (const model::OpId id : plan.graph().segments[facts.segment].forward) {
    const auto [whole, part] = plan.groups_of(id);
    key += whole < 0 ? "-" : "w";
    if (part >= 0)
      key +=
          "r" + std::to_string(number.emplace(part, static_cast<int>(number.size())).first->second);
  }
  return key;
}

/// What an operator knows besides its kind, annotation and shapes.
std::string knowledge_key(const Operator& op) {
  if (op.window == 0 && op.documents.empty() && op.cached == 0 && op.image.rows == 0 &&
      op.combine == model::Combine::sum)
    return "";
  std::string key =
      " w" + std::to_string(op.window) + " c" + std::to_string(static_cast<int>(op.combine));
  key += " k" + std::to_string(op.cached) + " d";
  for (const std::int64_t length : op.documents) key += std::to_string(length) + ",";
  return key + " " + std::to_string(op.image.rows) + "/" + std::to_string(op.image.side);
}

}  // namespace

std::vector<SegmentFacts> segment_facts(const Graph& graph) {
  const std::vector<int> producer = producers(graph);
  std::vector<SegmentFacts> all(graph.segments.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].segment = static_cast<int>(i);
    enter_tensors(all[i], graph);
  }
  find_forward_borders(all, graph, producer);
  for (SegmentFacts& facts : all) {
    find_backward_borders(facts, graph, producer);
    split_backward(facts, graph);
  }
  return all;
}

std::string structure_key(const strategies::Plan& plan, const placement::Grid& grid, int family,
                          const SegmentFacts& facts) {
  const Graph& graph = plan.graph();
  std::string key = std::to_string(family) + groups_key(plan, facts);
  key.reserve(8192);  // most take less, and this is the most frequent of all keys
  for (const placement::Axis& axis : grid.axes)
    key.append("/")
        .append(axis.name)
        .append(std::to_string(axis.size))
        .append("*")
        .append(std::to_string(axis.stride));
  const auto places = [&](const std::vector<TensorId>& tensors) {
    for (const TensorId tensor : tensors)
      key.append(" ").append(std::to_string(facts.place.at(tensor)));
  };
  const model::Segment& segment = graph.segments[facts.segment];
  for (const auto* ops : {&segment.forward, &segment.backward, &segment.optimizer}) {
    key += "|";
    for (const model::OpId id : *ops) {
      const Operator& op = graph.operators[id];
      key.append("\n").append(name_within(graph, op)).append(":");
      key.append(std::to_string(static_cast<int>(op.kind))).append(op.annotation->text);
      key += knowledge_key(op);
      key += division_key(plan, grid, id);
      places(op.inputs);
      key += ">";
      places(op.outputs);
    }
  }
  for (const TensorId tensor : facts.tensors) {
    const model::Tensor& t = graph.tensors[tensor];
    key.append(";")
        .append(std::to_string(static_cast<int>(t.type)))
        .append(std::to_string(static_cast<int>(t.role)));
    for (const std::int64_t size : t.shape) key.append("x").append(std::to_string(size));
  }
  for (const auto* border :
       {&facts.activations_in, &facts.activations_out, &facts.gradients_in, &facts.gradients_out}) {
    key += "#";
    places(*border);
  }
  return key;
}

std::string_view name_within(const Graph& graph, const Operator& op) {
  return std::string_view(op.name).substr(graph.segments[op.segment].name.size() + 1);
}

}  // namespace stratagem::lowering
