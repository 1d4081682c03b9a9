// Lists the kinds of operators that have kernels, and calls them.
#include <algorithm>
#include <array>

#include "base/input_error.hpp"
#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

using model::OpKind;

constexpr std::array computed = {OpKind::embedding,
                                 OpKind::add,
                                 OpKind::bias_add,
                                 OpKind::layer_norm,
                                 OpKind::rms_norm,
                                 OpKind::contraction,
                                 OpKind::fused_attention,
                                 OpKind::split_heads,
                                 OpKind::merge_heads,
                                 OpKind::rotary,
                                 OpKind::repeat,
                                 OpKind::masked_softmax,
                                 OpKind::causal_softmax,
                                 OpKind::softmax,
                                 OpKind::dropout,
                                 OpKind::attention_dropout,
                                 OpKind::gelu,
                                 OpKind::relu,
                                 OpKind::silu,
                                 OpKind::swiglu,
                                 OpKind::sigmoid,
                                 OpKind::multiply,
                                 OpKind::identity,
                                 OpKind::prepend,
                                 OpKind::relative_bias,
                                 OpKind::causal_relative_bias,
                                 OpKind::dispatch,
                                 OpKind::combine,
                                 OpKind::row_max,
                                 OpKind::exponential,
                                 OpKind::row_sum,
                                 OpKind::pick,
                                 OpKind::cross_entropy,
                                 OpKind::layer_norm_scale_gradient,
                                 OpKind::bias_gradient,
                                 OpKind::gradient_sum};

}  // namespace

std::string refusal(const model::Graph& graph, const model::Operator& op, Backend backend) {
  const std::string named = " (operator " + op.name + ")";
  if (op.kind == OpKind::fused_attention && backend == Backend::cuda) {
    const std::int64_t size = fused_head_size(graph, op);
    if (size > 256)
      return "fused attention on heads of " + std::to_string(size) +
             ", of which kernels on GPUs know " + "up to 256" + named;
  }
  if (op.kind == OpKind::fused_attention && !is_gradient_of_one(graph, op))
    return "fused attention whose operands others read, too" + named;
  if (std::ranges::find(computed, op.kind) == computed.end())
    return to_text(op.kind) + ", for which there is no kernel" + named;
  const bool by_distance =
      op.kind == OpKind::relative_bias || op.kind == OpKind::causal_relative_bias;
  if (by_distance && backend == Backend::cuda)
    return "biases by distance, as T5's, on a GPU" + named;
  const bool mixes = op.kind == OpKind::dispatch || op.kind == OpKind::combine;
  if (mixes && backend == Backend::cuda) return "mixtures of experts on a GPU" + named;
  if (op.kind == OpKind::rotary) {
    const model::Operator& forward = op.forward >= 0 ? graph.operators[op.forward] : op;
    const std::int64_t size = head_size(graph, forward);
    if (size % 2 != 0)
      return "rotary positions on heads of an odd size, " + std::to_string(size) + named;
  }
  if (op.kind == OpKind::contraction && !is_matrix_product(op))
    return "a product whose dimensions do not lie side by side" + named;
  return "";
}

template <typename T>
void apply(const Application<T>& application) {
  const bool done = apply_contraction(application) || apply_attention(application) ||
                    apply_pointwise(application) || apply_rows(application) ||
                    apply_heads(application) || apply_experts(application) ||
                    apply_loss(application);
  expects(done, "an operator that is not refused is computed");
}

template void apply<float>(const Application<float>&);
template void apply<double>(const Application<double>&);

}  // namespace stratagem::execute
