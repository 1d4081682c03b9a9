// The table of operator kinds.
#include "model/operator_kinds.hpp"

#include <algorithm>
#include <iterator>

#include "base/input_error.hpp"

namespace stratagem::model {
namespace {

constexpr OperandOf dy{OperandOf::Side::returned, 0};
constexpr OperandOf every_dy{OperandOf::Side::returned, -1};
constexpr OperandOf x(int place) { return {OperandOf::Side::input, place}; }
constexpr OperandOf y(int place) { return {OperandOf::Side::output, place}; }

constexpr OperandForm pointwise{.counts = "1>1", .keeps_shape = true};
constexpr OperandForm row_by_row{.counts = "1>1", .keeps_shape = true, .whole_rows = true};
constexpr OperandForm not_said{};

/// Kernels of one kind, forward and backward.
OperatorKind row(std::string_view name, std::string_view kernel, std::string_view passes,
                 const OperandForm& operands, std::vector<GradientRule> gradients = {}) {
  return {name, kernel, kernel, passes, operands, std::move(gradients)};
}

/// A fused attention, whose gradients compute its scores again.
OperatorKind fused(std::string_view name, std::string_view passes,
                   std::string_view in_stacks = {}) {
  const std::vector<OperandOf> reads = {dy, x(0), x(1), x(2), y(0), y(1)};
  return {
      name,
      "attention",
      "attention_backward",
      passes,
      {.counts = "3-4>2"},
      {{0, reads}, {1, reads}, {2, reads}, {3, {dy, y(0), y(1), x(3)}, "attention_sink_gradient"}},
      in_stacks};
}

/// By OpKind.
std::vector<OperatorKind> kinds_in_code() {
  return {
      row("embedding", "embedding", "FW", {.counts = "2>1", .sums = true}, {{1, {dy, x(0)}}}),
      row("add", "elementwise", "F", {.counts = "2>1", .keeps_shape = true}, {{0}, {1}}),
      row("bias_add", "elementwise", "F", {.counts = "2>1", .keeps_shape = true}, {{0}, {1}}),
      row("layer_norm", "norm", "FB", {.counts = "3>2", .keeps_shape = true, .whole_rows = true},
          {{0, {dy, x(0), y(1), x(1)}}, {1, {dy, x(0), y(1)}, "layer_norm_scale_gradient"}, {2}}),
      row("rms_norm", "rms_norm", "FB", {.counts = "2>2", .keeps_shape = true, .whole_rows = true},
          {{0, {dy, x(0), y(1), x(1)}}, {1, {dy, x(0), y(1)}, "layer_norm_scale_gradient"}}),
      row("contraction", "gemm", "FBW", {.counts = "2>1", .sums = true},
          {{0, {dy, x(1)}}, {1, {dy, x(0)}}}),
      row("split_heads", "elementwise", "FB", {.counts = "1>1-9"}, {{0, {every_dy}}}),
      row("merge_heads", "elementwise", "FB", {.counts = "1>1"}, {{0, {dy}}}),
      row("rotary", "elementwise", "FB", row_by_row, {{0, {dy}}}),
      row("repeat", "elementwise", "FB", {.counts = "1>1"}, {{0, {dy}}}),
      row("masked_softmax", "softmax", "FB", row_by_row, {{0, {dy, y(0)}}}),
      // Frameworks mask scores with the same kernels whether these scale them or not.
      {"causal_softmax", "softmax", "softmax", "", row_by_row, {{0, {dy, y(0)}}}, "masked_softmax"},
      row("softmax", "softmax", "FB", row_by_row, {{0, {dy, y(0)}}}),
      row("scaled_softmax", "softmax", "FB", row_by_row, {{0, {dy, y(0)}}}),
      row("dropout", "dropout", "FB", {.counts = "1>2", .keeps_shape = true}, {{0, {dy, y(1)}}}),
      row("attention_dropout", "dropout", "FB", {.counts = "1>2", .keeps_shape = true},
          {{0, {dy, y(1)}}}),
      fused("fused_attention", "FB"),
      fused("fused_attention_to_all", "", "fused_attention"),
      {"cached_attention", "attention", "attention", "", {.counts = "5>2"}, {}, "fused_attention"},
      row("gelu", "activation_function", "FB", pointwise, {{0, {dy, x(0)}}}),
      row("relu", "activation_function", "FB", pointwise, {{0, {dy, y(0)}}}),
      row("squared_relu", "activation_function", "FB", pointwise, {{0, {dy, x(0)}}}),
      row("silu", "activation_function", "FB", pointwise, {{0, {dy, x(0)}}}),
      row("swiglu", "activation_function", "FB", {.counts = "1>1"}, {{0, {dy, x(0)}}}),
      row("sigmoid", "activation_function", "FB", pointwise, {{0, {dy, y(0)}}}),
      row("multiply", "elementwise", "FB", {.counts = "2>1", .keeps_shape = true},
          {{0, {dy, x(1)}}, {1, {dy, x(0)}}}),
      row("cast", "elementwise", "FB", not_said, {{0}}),
      row("identity", "elementwise", "", pointwise, {{0}}),
      row("prepend", "elementwise", "FBW", {.counts = "2>1"}, {{0, {dy}}, {1, {dy}}}),
      row("relative_bias", "elementwise", "FW", {.counts = "1>1"}, {{0, {dy}}}),
      row("causal_relative_bias", "elementwise", "FW", {.counts = "1>1"}, {{0, {dy}}}),
      row("dispatch", "elementwise", "FB", {.counts = "2>2"},
          {{0, {dy, y(1)}}}),  // the choice of slots has none
      row("combine", "elementwise", "FB", {.counts = "3>1"},
          {{0, {dy, x(1), x(2)}}, {1, {dy, x(0), x(2)}}}),
      row("row_max", "reduction", "F", {.counts = "1>1", .sums = true}),
      row("exponential", "cross_entropy", "F", {.counts = "2>1"}),
      row("row_sum", "reduction", "F", {.counts = "1-2>1", .sums = true}),
      row("pick", "elementwise", "F", {.counts = "2>1", .sums = true}),
      // d loss / d logits = exponential / sum - [label], if it was not left where the logits were.
      row("cross_entropy", "cross_entropy", "FB", {.counts = "5-6>1-2"},
          {{0, {}, "", y(1)}, {4, {dy, x(0), x(1), x(3)}}}),
      row("layer_norm_scale_gradient", "reduction", "W", not_said),
      row("bias_gradient", "reduction", "BW", not_said),
      row("gradient_sum", "elementwise", "B", not_said),
      row("optimizer_step", "optimizer", "", not_said),
  };
}

/// Kinds that code finds by their names.
std::vector<OperatorKind> kinds_by_name() {
  return {
      row("tanh", "activation_function", "FB", pointwise, {{0, {dy, y(0)}}}),
      row("first_token", "elementwise", "FB", {.counts = "1>1", .takes_whole = true}, {{0, {dy}}}),
      row("last_token", "elementwise", "FB", {.counts = "1>1", .takes_whole = true}, {{0, {dy}}}),
      row("attention_sink_gradient", "reduction", "W", not_said),
      row("slot_weights", "elementwise", "FB", {.counts = "2>1"}, {{0, {dy, x(1)}}}),
      row("weighted_swiglu", "activation_function", "FB", {.counts = "2>1"},
          {{0, {dy, x(0), x(1)}}, {1, {dy, x(0)}}}),
      row("collect", "elementwise", "FB", {.counts = "2>1"}, {{0, {dy, x(1)}}}),
      row("join", "elementwise", "FB", {.counts = "2>1"}, {{0, {dy}}, {1, {dy}}}),
      row("windows", "elementwise", "FB", {.counts = "1>1", .of_image = true}, {{0, {dy}}}),
      row("from_windows", "elementwise", "FB", {.counts = "1>1", .of_image = true}, {{0, {dy}}}),
      row("shift", "elementwise", "FB", {.counts = "1>1", .keeps_shape = true, .of_image = true},
          {{0, {dy}}}),
      row("shift_back", "elementwise", "FB",
          {.counts = "1>1", .keeps_shape = true, .of_image = true}, {{0, {dy}}}),
      row("window_bias", "elementwise", "FW", {.counts = "1>1", .of_image = true}, {{0, {dy}}}),
      row("window_mask", "elementwise", "F",
          {.counts = "1>1", .keeps_shape = true, .of_image = true}, {{0}}),
      row("squared_error", "elementwise", "FB", {.counts = "2>1", .keeps_shape = true},
          {{0, {dy, x(0), x(1)}}}),
      row("pairwise_loss", "elementwise", "FB", {.counts = "1>1"}, {{0, {dy, x(0)}}}),
      row("token_mean", "reduction", "FB", {.counts = "1>1", .takes_whole = true}, {{0, {dy}}}),
  };
}

}  // namespace

const std::vector<OperatorKind>& operator_kinds() {
  static const std::vector<OperatorKind> rows = [] {
    std::vector<OperatorKind> all = kinds_in_code();
    std::ranges::copy(kinds_by_name(), std::back_inserter(all));
    return all;
  }();
  return rows;
}

OpKind operator_named(std::string_view name) {
  const auto found = std::ranges::find(operator_kinds(), name, &OperatorKind::name);
  expects(found != operator_kinds().end(), "a kind of operator that is named is in the table");
  return static_cast<OpKind>(found - operator_kinds().begin());
}

std::string to_text(OpKind kind) { return std::string(row_of(kind).name); }

std::string stack_name(const Operator& op) {
  const OperatorKind& row = row_of(op.kind);
  const std::string name(row.in_stacks.empty() ? row.name : row.in_stacks);
  if (op.pass == Pass::input_gradient) return name + ".B";
  return op.pass == Pass::weight_gradient ? name + ".W" : name;
}

std::vector<std::string> stack_names(std::string_view of_passes) {
  std::vector<std::string> names;
  for (const OperatorKind& row : operator_kinds()) {
    for (const char pass : row.passes) {
      if (of_passes.find(pass) == std::string_view::npos) continue;
      names.push_back(std::string(row.name) + (pass == 'F' ? "" : std::string(".") + pass));
    }
  }
  return names;
}

}  // namespace stratagem::model
