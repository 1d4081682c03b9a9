// A layer's MLP as a mixture of experts: a router sends every token to a few of many MLPs.
#pragma once

#include <cstdint>

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/builder.hpp"
#include "model/zoo/mlp.hpp"

namespace stratagem::model {

/// What makes weights of experts out of a token's logits.
enum class Router : std::uint8_t {
  softmax,  ///< of all experts
  sigmoid   ///< of each alone, as DeepSeek-V3's
};

/// What a router's weights are multiplied with.
enum class Weighing : std::uint8_t {
  results,    ///< what experts return, which is kept for the backward pass
  activation  ///< what a SwiGLU within an expert leaves, by one kernel that keeps its input only
};

/// Which layers have experts, how many, and how much of them is used.
struct Experts {
  std::int64_t count = 0;        ///< of one layer; 0: all layers have one MLP
  std::int64_t per_token = 1;    ///< k: how many experts every token is sent to
  double capacity_factor = 1.0;  ///< an expert's slots over its share of the tokens
  std::int64_t every = 1;        ///< layers n, 2n, ... have experts, counted from 1
  std::int64_t plain = 0;        ///< the first layers, which have one MLP whatever `every` says
  std::int64_t width = 0;        ///< of an expert's MLP; 0: that of the others
  std::int64_t shared = 0;       ///< experts that every token passes, as one MLP
  Router router = Router::softmax;
  bool router_bias = false;  ///< added to logits
  Weighing weighing = Weighing::results;

  [[nodiscard]] bool in_layer(std::int64_t layer) const;  ///< counted from 0

  /// Slots of one expert for the `sequence` tokens of one sample: ceil(k * s * capacity_factor /
  /// count).
  [[nodiscard]] std::int64_t capacity(std::int64_t sequence) const;

  /// The share of the slots of all experts that tokens fill, k per token, if the router spreads
  /// them evenly; at most 1. If there are fewer slots than that, the tokens without a slot are
  /// dropped and are no work of the model.
  [[nodiscard]] double filled(std::int64_t sequence) const;

  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Adds
///   p = softmax(W_r x + b_r), or sigmoid;  y = sum over the k experts e with the largest p_e
///                                          of p_e * E_e(x)
/// for x of shape (batch, sequence, hidden), each E_e an MLP of its own. Every sample is a group:
/// it has `capacity` slots at every expert, so that shapes are fixed and k * tokens *
/// capacity_factor slots are computed whatever the router says; model FLOPs are those of the slots
/// that tokens take. Weights may be multiplied with what a SwiGLU within an expert leaves:
/// without biases that is the same, and nothing that experts return is kept. Shared experts are one
/// MLP, whose result is added to y. Costs know neither which tokens find no slot nor which slots
/// stay empty, and the loss that balances the experts is left out. Experts work on (expert, sample
/// and slot, hidden), samples outermost: split along samples before and after, along experts
/// between, the layout search finds one all-to-all on either side. Source: Lepikhin et al., GShard,
/// arXiv:2006.16668, section 2.2; Fedus et al., Switch Transformers, arXiv:2101.03961, section 2.2.
TensorId mixture_of_experts(Builder& build, TensorId x, const Experts& experts, const Mlp& expert);

/// What a layer, counted from 0, does after its attention: one MLP or a mixture of many.
TensorId feed_forward(Builder& build, TensorId x, std::int64_t layer, const Experts& experts,
                      const Mlp& mlp);

/// A family's options, with those of its experts.
template <typename Config>
OptionList<Config> with_experts(OptionList<Config> options) {
  const auto add = [&](const char* key, auto member, const auto& format, const char* what,
                       const char* usual = "") {
    const auto place = [member](Config & c) -> auto& { return c.experts.*member; };
    options.push_back(Option<Config>(key, place, format, what, usual));
  };
  add("experts", &Experts::count, whole(1),
      "experts of every mixture; without it layers have one MLP", "none");
  add("experts_per_token", &Experts::per_token, whole(1),
      "with `experts`: how many each token is sent to");
  add("capacity_factor", &Experts::capacity_factor, positive(1'000'000),
      "with `experts`: an expert's slots over its even share of a sample's tokens");
  add("moe_every", &Experts::every, whole(1),
      "with `experts`: every n-th layer is a mixture, the others have one MLP");
  add("plain_layers", &Experts::plain, whole(1, 10'000),
      "with `experts`: the first layers that have one MLP", "none");
  add("expert_width", &Experts::width, whole(1, 10'000'000),
      "with `experts`: width of each expert's MLP", "`intermediate`");
  add("shared_experts", &Experts::shared, whole(1),
      "with `experts`: experts that process every token, computed as one MLP", "none");
  add("router", &Experts::router,
      choice<Router>({{"softmax", Router::softmax}, {"sigmoid", Router::sigmoid}}),
      "with `experts`: what makes weights out of a router's logits; sigmoid: as DeepSeek-V3");
  add("weigh", &Experts::weighing,
      choice<Weighing>({{"results", Weighing::results}, {"activation", Weighing::activation}}),
      "with `experts`: what a router's weights are multiplied with: what experts return, or what "
      "their SwiGLU leaves, by the same kernel, as in Megatron-Core since 0.12");
  add("router_bias", &Experts::router_bias, flag(),
      "with `experts`: a trained bias of each on the router's logits; DeepSeek-V3's is adjusted by "
      "load instead, here it counts as trained");
  return options;
}
/// Refuses keys that make sense with experts only, more experts or layers than there are, and
/// weights within experts other than a SwiGLU of one kernel without biases.
void check_experts(const JsonReader& config, const Experts& experts, std::int64_t layers,
                   bool may_weigh_within);

}  // namespace stratagem::model
