// A layer's MLP as a mixture of experts: a router sends every token to a few of many MLPs.
#pragma once

#include <cstdint>

#include "model/builder.hpp"

namespace stratagem::model {

/// What the experts of a layer are like.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 1;    ///< k: how many experts every token is sent to
  double capacity_factor = 1.0;  ///< an expert's slots over its share of the tokens
  std::int64_t inner = 0;        ///< columns of an expert's first matrix
  OpKind activation = OpKind::gelu;

  /// Slots of one expert for the `sequence` tokens of one sample: ceil(k * s * capacity_factor /
  /// count).
  [[nodiscard]] std::int64_t capacity(std::int64_t sequence) const;

  /// The share of the slots of all experts that tokens fill, k per token, if the router spreads
  /// them evenly; at most 1. If there are fewer slots than that, the tokens without a slot are
  /// dropped and are no work of the model.
  [[nodiscard]] double filled(std::int64_t sequence) const;
};

/// Adds
///   p = softmax(W_r x);  y = sum over the k experts e with the largest p_e of p_e * E_e(x),
///   E_e(x) = W_2e gelu(W_1e x + b_1e) + b_2e
/// for x of shape (batch, sequence, hidden). Every sample is a group of its own: it has `capacity`
/// slots at every expert, so that shapes are fixed and k * tokens * capacity_factor slots are
/// computed whatever the router says; model FLOPs are those of the slots that tokens take. Which
/// tokens find no slot, which slots stay empty, and the loss that balances the experts are not
/// modelled. Experts work on (expert, sample and slot, hidden), samples outermost: split along
/// samples before and after, along experts between, the layout search finds one all-to-all on
/// either side. Source: Lepikhin et al., GShard, arXiv:2006.16668, section 2.2; Fedus et al.,
/// Switch Transformers, arXiv:2101.03961, section 2.2.
TensorId mixture_of_experts(Builder& build, TensorId x, const Experts& experts);

/// Of the router and all experts: count * (h + 2 * h * inner + inner + h).
std::int64_t mixture_of_experts_parameters(const Experts& experts, std::int64_t hidden);

}  // namespace stratagem::model
