// Megatron-LM's tensor parallelism: every rank holds a share of each layer's matrices.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

using model::Operator;
using model::OpKind;
using model::TensorId;

/// Walks the operators in order and says what each divides over the tensor ranks.
class TensorDivision {
 public:
  TensorDivision(const model::Graph& graph, const Options& options)
      : graph_(graph), options_(options) {
    for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
      if (op->pass != model::Pass::forward) continue;
      if (op->kind == OpKind::add) added_to_[op->inputs[1]] = op->inputs[0];
      const bool adds = op->kind == OpKind::bias_add || op->kind == OpKind::add;
      const bool cut = adds && cut_into_heads_.contains(op->outputs[0]);
      if (cut || cuts_into_heads(*op)) cut_into_heads_.insert(op->inputs[0]);
      note_layers_behind(*op);
    }
  }

  /// The dimension that the next operator divides; "" where it is replicated.
  std::string next(const Operator& op) {
    const std::string usual = usual_dimension(op);
    const bool sums = adds_partial_sums(op);
    const bool tokens = usual.empty() && !sums && divides_tokens(op, options_);
    std::string dim =
        named_dimension(options_.division.operators, op).value_or(tokens ? "s" : usual);
    for (const TensorId input : op.inputs) note_table(op, input, dim);
    if (!dim.empty() && dim == usual) note_outputs(op, dim);
    // Rows of a divided table are summed where they are looked up: residual sums begin with them.
    const bool leaves_sums =
        op.kind != OpKind::embedding && model::is_reduction(*op.annotation, dim);
    if (leaves_sums || (sums && dim.empty())) partial_.insert(op.outputs.begin(), op.outputs.end());
    return dim;
  }

 private:
  /// What Megatron-LM divides: heads and MLP columns stay divided until a contraction sums over
  /// them.
  [[nodiscard]] std::string usual_dimension(const Operator& op) const {
    if (const auto incoming = divided_.find(op.inputs[0]); incoming != divided_.end()) {
      const std::string dim = op.annotation->inputs[0][incoming->second].identifiers.front();
      return model::may_split(*op.annotation, dim) ? dim : "";
    }
    if (op.kind == OpKind::embedding)
      return model::may_split(*op.annotation, "vocabulary") ? "vocabulary" : "";
    if (is_made_of_parameters(op)) return model::may_split(*op.annotation, "heads") ? "heads" : "";
    return op.kind == OpKind::contraction ? columns(op) : "";
  }

  /// Not where a row is cut that has no heads.
  static bool cuts_into_heads(const Operator& op) {
    return op.kind == OpKind::split_heads && op.annotation->inputs[0].back().identifiers.size() > 1;
  }

  /// The linear layers that sum over an activation's last dimension: those that read it, or that
  /// stand behind operators which keep the elements of that dimension apart.
  struct LayersBehind {
    std::set<std::int64_t> widths;  ///< of their results
    bool of_function = false;       ///< does anything but biases, adapters and casts lie between?
  };

  void note_layers_behind(const Operator& op) {
    if (op.kind == OpKind::contraction) {
      const bool linear = graph_.tensors[op.inputs[1]].role == model::Role::parameter;
      const std::string& last = op.annotation->inputs[0].back().identifiers.front();
      if (linear && model::is_reduction(*op.annotation, last))
        layers_behind_[op.inputs[0]].widths.insert(graph_.tensors[op.outputs[0]].shape.back());
      return;
    }
    const auto found = layers_behind_.find(op.outputs[0]);
    if (found == layers_behind_.end()) return;
    LayersBehind behind = found->second;
    const std::string& last = op.annotation->outputs[0].back().identifiers.front();
    if (!model::may_split(*op.annotation, last)) return;
    const bool adds = op.kind == OpKind::bias_add || op.kind == OpKind::add;
    behind.of_function = behind.of_function || !(adds || op.kind == OpKind::cast);
    for (std::size_t i = 0; i < (adds ? 1 : op.inputs.size()); ++i) {
      const std::vector<model::Term>& terms = op.annotation->inputs[i];
      if (terms.empty() || terms.back().identifiers.front() != last) continue;
      LayersBehind& before = layers_behind_[op.inputs[i]];
      before.widths.insert(behind.widths.begin(), behind.widths.end());
      before.of_function = before.of_function || behind.of_function;
    }
  }

  /// Is a linear layer the first of an MLP: a function of its elements, and a second layer that
  /// returns to the width of what the first one reads?
  [[nodiscard]] bool begins_mlp(const Operator& op) const {
    const auto behind = layers_behind_.find(op.outputs[0]);
    return behind != layers_behind_.end() && behind->second.of_function &&
           behind->second.widths.contains(graph_.tensors[op.inputs[0]].shape.back());
  }

  /// The lowering completes such a sum once; dividing it would complete every operand.
  [[nodiscard]] bool adds_partial_sums(const Operator& op) const {
    return op.kind == OpKind::add && std::ranges::all_of(op.inputs, [&](TensorId tensor) {
             return partial_.contains(tensor);
           });
  }

  /// Such as biases by distance, which are added to scores that are divided along heads.
  [[nodiscard]] bool is_made_of_parameters(const Operator& op) const {
    return std::ranges::all_of(op.inputs, [&](TensorId input) {
      return graph_.tensors[input].role == model::Role::parameter;
    });
  }

  /// Of a matrix: columns where it widens (QKV, logits; experts have one matrix each), a copy
  /// together with the others, where they become heads (queries alone), or where an MLP begins,
  /// however narrow; a tied table is divided as it was for the lookup. What is added to a partial
  /// sum, as an adapter is, stays whole.
  [[nodiscard]] std::string columns(const Operator& op) const {
    if (const auto sum = added_to_.find(op.outputs[0]);
        sum != added_to_.end() && partial_.contains(sum->second))
      return "";
    const std::vector<model::Term>& terms = op.annotation->inputs[1];
    if (const auto tied = tables_.find(op.inputs[1]); tied != tables_.end())
      return tied->second < 0 ? "" : terms[tied->second].identifiers.front();
    const model::Tensor& weight = graph_.tensors[op.inputs[1]];
    if (weight.role != model::Role::parameter) return "";
    const std::size_t column = weight.shape.size() - 2;
    const auto size = [&](std::size_t d) {
      return weight.shape[d] * (terms[d].identifiers.front() == op.shared ? op.copies : 1);
    };
    const bool divides = size(column) > size(column + 1) ||
                         cut_into_heads_.contains(op.outputs[0]) || begins_mlp(op);
    return divides ? terms[column].identifiers.front() : "";
  }

  void note_table(const Operator& op, TensorId input, const std::string& dim) {
    if (graph_.tensors[input].role != model::Role::parameter) return;
    const auto place = std::ranges::find(op.inputs, input) - op.inputs.begin();
    tables_[input] = model::dimension_of(op.annotation->inputs[place], dim);
  }

  void note_outputs(const Operator& op, const std::string& dim) {
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const int position = model::dimension_of(op.annotation->outputs[i], dim);
      if (position >= 0) divided_[op.outputs[i]] = position;
    }
  }

  const model::Graph& graph_;
  const Options& options_;
  std::map<TensorId, LayersBehind> layers_behind_;  ///< by activation
  std::set<TensorId> cut_into_heads_;  ///< and products to which a bias or adapter is added before
  std::map<TensorId, TensorId> added_to_;  ///< by second operand of a sum: the first
  std::set<TensorId> partial_;             ///< activations of which every rank has a partial sum
  std::map<TensorId, int> divided_;  ///< by activation: its dimension that Megatron-LM divides
  std::map<TensorId, int> tables_;   ///< by parameter: its divided dimension, -1 if whole
};

/// op-trans, operator by operator: the token table along the vocabulary; QKV and fc1 by columns, so
/// that heads and MLP columns stay on their rank; the projections after them by rows, which leaves
/// partial sums; logits and the parts of the cross-entropy along the vocabulary. Norms, dropouts
/// and residuals between are replicated. The lowering finds what must be communicated: two
/// all-reduces of b*s*h per layer forward and two backward. Source: Shoeybi et al., Megatron-LM,
/// arXiv:1909.08053, section 3.
///
/// Operators that the option "operators" names divide what it says. Where that is another dimension
/// than Megatron-LM's, the operators after them go on as if what they read were whole.
void divide_operators(Plan& plan, const Options& options) {
  if (options.tensor == 1) return;
  divide_as_tensor_ranks(
      plan, plan.operators(),
      {.name = "tensor", .size = options.tensor, .stride = stride_of(options, "tp")}, options);
}

}  // namespace

Strategy tensor_parallel() {
  using Ranks = Option<Options>;
  return {{Ranks{"tensor", &Options::tensor, whole(1),
                 "Megatron-LM's tensor parallelism: ranks that divide heads, MLP and vocabulary; "
                 "two all-reduces a layer and pass"}
               .worth({1, 2, 4, 8})},
          &divide_operators,
          nullptr,
          {.name = "tp", .size = [](const Options& options) { return options.tensor; }}};
}

void divide_as_tensor_ranks(Plan& plan, const std::vector<model::OpId>& ops,
                            const placement::Axis& ranks, const Options& options) {
  TensorDivision division(plan.graph(), options);
  for (const model::OpId id : ops) {
    const std::string dim = division.next(plan.graph().operators[id]);
    plan.assign(plan.trans(id, {.dim = dim, .parts = ranks.size}), ranks);
  }
}

}  // namespace stratagem::strategies
