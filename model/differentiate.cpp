// Derives the backward pass: walks the forward operators from last to first and adds what returns
// gradients.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::model {
namespace {

using Terms = std::vector<Term>;

/// A tensor that a backward operator reads or writes, with the terms that the forward annotation
/// gives it.
struct Operand {
  TensorId tensor;
  Terms terms;
};

/// A gradient that input `input` of operator `consumer` returned.
struct Returned {
  TensorId gradient;
  OpId consumer;
  std::size_t input;
};

class Differentiation {
 public:
  Differentiation(Graph& graph, TensorId loss) : graph_(graph), returned_(graph.tensors.size()) {
    graph_.gradient_of.assign(graph_.tensors.size(), -1);
    for (const Operator& op : graph_.operators) {
      if (op.kind == OpKind::cast) type_before_[op.outputs[0]] = graph_.tensors[op.inputs[0]].type;
    }
    stop_at_frozen();
    // The gradient of the loss is a constant of the loss's shape; nothing computes it.
    const TensorId gradient = new_gradient(loss, Role::input);
    returned_[loss].push_back({gradient, -1, 0});
  }

  void run() {
    const auto forward_count = static_cast<OpId>(graph_.operators.size());
    for (OpId id = forward_count - 1; id >= 0; --id) differentiate_operator(id);
    for (OpId id = 0; id < forward_count; ++id) {
      for (const TensorId tensor : std::vector(graph_.operators[id].inputs))
        add_optimizer_step(id, tensor);
    }
    for (Segment& segment : graph_.segments) {  // sums were appended when their tensor's turn came
      std::ranges::stable_sort(segment.backward, std::greater<>(),
                               [this](OpId id) { return graph_.operators[id].forward; });
    }
  }

 private:
  /// What is computed from nothing trainable needs no gradient.
  void stop_at_frozen() {
    for (const Operator& op : graph_.operators) {
      if (std::ranges::any_of(op.inputs, [this](TensorId t) { return trainable(t); })) continue;
      for (const TensorId tensor : op.outputs) graph_.tensors[tensor].requires_grad = false;
    }
  }

  TensorId new_gradient(TensorId of, Role role) {
    Tensor gradient = graph_.tensors[of];
    gradient.name += ".grad";
    gradient.role = role;
    gradient.requires_grad = false;
    gradient.origin.reset();
    const bool held = graph_.tensors[of].role == Role::parameter && graph_.held_gradients;
    if (held) gradient.type = *graph_.held_gradients;
    if (const auto before = type_before_.find(of); before != type_before_.end())
      gradient.type = before->second;
    graph_.tensors.push_back(std::move(gradient));
    graph_.gradient_of.push_back(-1);
    returned_.emplace_back();
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }

  [[nodiscard]] bool trainable(TensorId tensor) const {
    return graph_.tensors[tensor].requires_grad;
  }
  [[nodiscard]] Operand input(OpId id, std::size_t i) const {
    return {graph_.operators[id].inputs[i], graph_.operators[id].annotation->inputs[i]};
  }
  [[nodiscard]] Operand output(OpId id, std::size_t i) const {
    return {graph_.operators[id].outputs[i], graph_.operators[id].annotation->outputs[i]};
  }

  void emit(OpId forward, OpKind kind, Pass pass, const std::vector<Operand>& inputs,
            const Operand& result) {
    const Operator& origin = graph_.operators[forward];
    Segment& segment = graph_.segments[origin.segment];
    const std::string suffix = kind == OpKind::gradient_sum    ? ".sum"
                               : kind == OpKind::cast          ? ".B.cast"
                               : pass == Pass::weight_gradient ? ".W"
                                                               : ".B";
    const std::string name = origin.name + suffix;
    const bool second = std::ranges::any_of(
        segment.backward, [&](OpId id) { return graph_.operators[id].name == name; });
    Operator op{.name = name + (second ? "2" : ""),
                .kind = kind,
                .pass = pass,
                .annotation = without_terms(),
                .inputs = {},
                .outputs = {result.tensor},
                .segment = origin.segment,
                .forward = forward,
                .combine = Combine::sum};
    std::string annotation;
    for (const Operand& operand : inputs) {
      annotation += (annotation.empty() ? "" : ", ") + to_text(operand.terms, result.terms);
      op.inputs.push_back(operand.tensor);
    }
    op.annotation = parse_annotation(annotation + " -> " + to_text(result.terms, result.terms));
    segment.backward.push_back(static_cast<OpId>(graph_.operators.size()));
    graph_.operators.push_back(std::move(op));
  }

  /// Adds an operator that computes the gradient of input `i` of `id`, where that is trainable. All
  /// consumers of a parameter write to one gradient; an activation gets one gradient per consumer,
  /// summed later.
  void give(OpId id, std::size_t i, OpKind kind, const std::vector<Operand>& inputs) {
    const Operand target = input(id, i);
    if (!trainable(target.tensor)) return;
    const bool parameter = graph_.tensors[target.tensor].role == Role::parameter;
    TensorId gradient = parameter ? graph_.gradient_of[target.tensor] : -1;
    if (gradient < 0) gradient = new_gradient(target.tensor, Role::gradient);
    emit(id, kind, parameter ? Pass::weight_gradient : Pass::input_gradient, inputs,
         {gradient, target.terms});
    if (parameter) {
      graph_.gradient_of[target.tensor] = gradient;
    } else {
      returned_[target.tensor].push_back({gradient, id, i});
    }
  }

  /// The gradient of an input is the very gradient of the output: no operator.
  void pass_on(OpId id, std::size_t i, const Operand& gradient) {
    const TensorId tensor = graph_.operators[id].inputs[i];
    if (trainable(tensor)) returned_[tensor].push_back({gradient.tensor, id, i});
  }

  /// The gradient of output `o`: what its only consumer returned, or the sum over all consumers; -1
  /// if none did. The sums are operators of the consumer that comes first in the forward pass,
  /// hence last in the backward one; so what later segments return is summed before it crosses the
  /// border, and that sum is noted as the tensor's gradient.
  Operand gradient_of(OpId id, std::size_t o) {
    const Operand of = output(id, o);
    std::vector<Returned> parts = returned_[of.tensor];
    const auto outside = [&](const Returned& part) {
      return part.consumer >= 0 &&
             graph_.operators[part.consumer].segment != graph_.operators[id].segment;
    };
    TensorId crossing = -1;
    while (parts.size() > 1) {
      if (outside(parts[0]) && !outside(parts[1])) crossing = parts[0].gradient;
      const Returned& last = parts[1];
      const Terms terms = input(last.consumer, last.input).terms;
      const Operand sum{new_gradient(of.tensor, Role::gradient), terms};
      emit(last.consumer, OpKind::gradient_sum, Pass::input_gradient,
           {{parts[0].gradient, terms}, {last.gradient, terms}}, sum);
      parts[1].gradient = sum.tensor;
      parts.erase(parts.begin());
    }
    const TensorId whole = parts.empty() ? -1 : parts.front().gradient;
    graph_.gradient_of[of.tensor] = crossing >= 0 ? crossing : whole;
    return {whole, of.terms};
  }

  /// The gradient of a product's output in the type of its operands. The output's consumer casts
  /// it, if it is in the same segment: so what is moved to the products is the copy.
  Operand cast_gradient(OpId id, const Operand& gradient) {
    const Operator& op = graph_.operators[id];
    const DataType type = graph_.tensors[op.inputs[0]].type;
    const TensorId copy = new_gradient(gradient.tensor, Role::gradient);
    graph_.tensors[copy].name = graph_.tensors[gradient.tensor].name + " in " + to_text(type);
    graph_.tensors[copy].type = type;
    const Returned last = returned_[op.outputs[0]].back();
    const bool within = last.consumer >= 0 && graph_.operators[last.consumer].segment == op.segment;
    const Terms terms = within ? input(last.consumer, last.input).terms : gradient.terms;
    emit(within ? last.consumer : id, OpKind::cast, Pass::input_gradient,
         {{gradient.tensor, terms}}, {copy, terms});
    return {copy, gradient.terms};
  }

  void differentiate_operator(OpId id) {
    const OpKind kind = graph_.operators[id].kind;
    const std::vector<GradientRule>& rules = row_of(kind).gradients;
    const std::vector<TensorId>& inputs = graph_.operators[id].inputs;
    if (std::ranges::none_of(inputs, [this](TensorId t) { return trainable(t); })) return;
    const bool every = std::ranges::any_of(rules, [](const GradientRule& rule) {
      return std::ranges::any_of(rule.reads, [](const OperandOf& read) { return read.place < 0; });
    });
    std::vector<Operand> gradients;
    const std::size_t outputs = every ? graph_.operators[id].outputs.size() : 1;
    for (std::size_t o = 0; o < outputs; ++o) gradients.push_back(gradient_of(id, o));
    const bool reached =
        std::ranges::all_of(gradients, [](const Operand& g) { return g.tensor >= 0; });
    if (!reached) return;
    const bool cast = type_before_.contains(graph_.operators[id].inputs[0]);
    if (kind == OpKind::contraction && cast)
      gradients.front() = cast_gradient(id, gradients.front());
    if (kind == OpKind::cached_attention) return;  // nothing is trained through a cache
    if (rules.empty())
      throw InputError("", "", "operators that have gradients on the way to the loss",
                       graph_.operators[id].name + ", a " + to_text(kind));
    for (const GradientRule& rule : rules) {
      if (has(id, rule)) follow(id, rule, gradients);
    }
  }

  [[nodiscard]] bool has(OpId id, const OperandOf& operand) const {
    const Operator& op = graph_.operators[id];
    const auto& side = operand.side == OperandOf::Side::input ? op.inputs : op.outputs;
    return operand.place < static_cast<int>(side.size());
  }
  [[nodiscard]] bool has(OpId id, const GradientRule& rule) const {
    return has(id, OperandOf{OperandOf::Side::input, rule.of}) &&
           (!rule.left_in || has(id, *rule.left_in)) &&
           std::ranges::all_of(rule.reads, [&](const OperandOf& read) { return has(id, read); });
  }

  void follow(OpId id, const GradientRule& rule, const std::vector<Operand>& gradients) {
    const Operand& out = gradients.front();
    if (rule.left_in) return pass_on(id, rule.of, output(id, rule.left_in->place));
    if (rule.reads.empty()) {
      const bool lacks = input(id, rule.of).terms.size() < out.terms.size();
      return lacks ? give(id, rule.of, OpKind::bias_gradient, {out}) : pass_on(id, rule.of, out);
    }
    std::vector<Operand> reads;
    for (const auto& [side, place] : rule.reads) {
      if (side == OperandOf::Side::returned && place < 0) {
        reads.insert(reads.end(), gradients.begin(), gradients.end());
      } else {
        reads.push_back(side == OperandOf::Side::returned ? gradients[place]
                        : side == OperandOf::Side::input  ? input(id, place)
                                                          : output(id, place));
      }
    }
    const OpKind kind = rule.kind.empty() ? graph_.operators[id].kind : operator_named(rule.kind);
    give(id, rule.of, kind, reads);
  }

  /// `gradient, parameter -> parameter`, elementwise, once per trainable parameter; `user` is its
  /// first reader.
  void add_optimizer_step(OpId user, TensorId parameter) {
    const TensorId gradient = graph_.gradient_of[parameter];
    const Tensor& tensor = graph_.tensors[parameter];
    if (tensor.role != Role::parameter || gradient < 0 || !stepped_.insert(parameter).second)
      return;
    std::string dims;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      dims += (d > 0 ? " d" : "d") + std::to_string(d);
    graph_.operators.push_back({.name = tensor.name + ".step",
                                .kind = OpKind::optimizer_step,
                                .pass = Pass::optimizer,
                                .annotation = parse_annotation(dims + ", " + dims + " -> " + dims),
                                .inputs = {gradient, parameter},
                                .outputs = {parameter},
                                .segment = graph_.operators[user].segment,
                                .forward = user,
                                .combine = Combine::sum});
    graph_.segments[graph_.operators[user].segment].optimizer.push_back(
        static_cast<OpId>(graph_.operators.size()) - 1);
  }

  Graph& graph_;
  std::vector<std::vector<Returned>> returned_;  ///< by tensor: what its consumers returned
  std::set<TensorId> stepped_;
  std::map<TensorId, DataType> type_before_;  ///< by copy that a cast makes
};

}  // namespace

void differentiate(Graph& graph, TensorId loss) {
  graph.loss = loss;
  Differentiation(graph, loss).run();
}

Graph forward_pass(Graph graph) {
  std::erase_if(graph.operators, [](const Operator& op) { return op.pass != Pass::forward; });
  TensorId last = graph.loss;
  for (const Operator& op : graph.operators) {
    for (const auto* operands : {&op.inputs, &op.outputs}) {
      for (const TensorId tensor : *operands) last = std::max(last, tensor);
    }
  }
  graph.tensors.resize(last + 1);
  graph.gradient_of.clear();
  for (Segment& segment : graph.segments) {
    segment.backward.clear();
    segment.optimizer.clear();
  }
  return graph;
}

}  // namespace stratagem::model
