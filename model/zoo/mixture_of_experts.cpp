// Builds router, dispatch, experts and combination.
#include "model/zoo/mixture_of_experts.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/operator_kinds.hpp"

namespace stratagem::model {
namespace {

class Mixture {
 public:
  Mixture(Builder& build, TensorId x, const Experts& experts)
      : build_(build),
        x_(x),
        experts_(experts),
        tokens_(tokens(build[x].shape[0], build[x].shape[1])),
        slots_(slots_of(tokens_, experts)) {}

  TensorId add(const Mlp& mlp) {
    Mlp expert = mlp;
    if (experts_.width > 0) expert.inner = experts_.width;
    const TensorId y = routed(expert);
    if (experts_.shared == 0) return y;
    expert.inner *= experts_.shared;
    expert.name = "mlp.shared";
    const TensorId shared = model::mlp(build_, tokens_, x_, expert);
    const TensorId sum = like_x("mlp.sum.out", tokens_);
    build_.add(OpKind::add, "mlp.sum", "b s h, b s h -> b s h", {y, shared}, {sum});
    return sum;
  }

 private:
  static Rows slots_of(const Rows& tokens, const Experts& experts) {
    const std::int64_t sequence = tokens.shape[1];
    return {.dims = "expert (b capacity^)",
            .shape = {experts.count, tokens.shape[0] * experts.capacity(sequence)},
            .experts = experts.count,
            .filled = experts.filled(sequence)};
  }

  TensorId routed(const Mlp& expert) {
    const TensorId probabilities = router();
    std::vector<std::int64_t> choices = tokens_.shape;
    choices.push_back(experts_.per_token);
    const TensorId slots =
        build_.tensor("mlp.slots", std::move(choices), DataType::int64, Role::mask);
    const TensorId sent = like_x("mlp.dispatch.out", slots_);
    build_.add(OpKind::dispatch, "mlp.dispatch",
               "b s^ h, b s^ expert^ -> expert (b capacity^) h, b s^ choice^", {x_, probabilities},
               {sent, slots});
    const bool inner = experts_.weighing == Weighing::activation;
    if (inner) slots_.weights = slot_weights(probabilities, slots);
    const TensorId returned = mlp(build_, slots_, sent, expert);
    const TensorId y = like_x("mlp.combine.out", tokens_);
    if (inner) {
      build_.add(operator_named("collect"), "mlp.combine",
                 "expert+ (b capacity^) h, b s^ choice^ -> b s^ h", {returned, slots}, {y});
    } else {
      build_.add(OpKind::combine, "mlp.combine",
                 "expert+ (b capacity^) h, b s^ expert+, b s^ choice^ -> b s^ h",
                 {returned, probabilities, slots}, {y});
    }
    return y;
  }

  /// The weight of every slot's token for its expert.
  TensorId slot_weights(TensorId probabilities, TensorId slots) {
    const TensorId weights = build_.tensor("mlp.slot_weights.out", slots_.shape, build_[x_].type,
                                           Role::activation, slots_.filled);
    build_.add(operator_named("slot_weights"), "mlp.slot_weights",
               "b s^ expert^, b s^ choice^ -> expert (b capacity^)", {probabilities, slots},
               {weights});
    return weights;
  }

  TensorId like_x(const std::string& name, const Rows& rows) {
    return activation(build_, rows, name, build_[x_].shape.back(), build_[x_].type);
  }

  TensorId router() {
    const DataType type = build_[x_].type;
    const std::int64_t count = experts_.count;
    const TensorId weight =
        build_.parameter("mlp.router.weight", {count, build_[x_].shape.back()}, type);
    const TensorId bias =
        experts_.router_bias ? build_.parameter("mlp.router.bias", {count}, type) : -1;
    TensorId logits = activation(build_, tokens_, "mlp.router.logits", count, type);
    build_.add(OpKind::contraction, "mlp.router", "b s k+, expert k+ -> b s expert", {x_, weight},
               {logits});
    if (bias >= 0) {
      const TensorId y = activation(build_, tokens_, "mlp.router.out", count, type);
      build_.add(OpKind::bias_add, "mlp.router.bias_add", "b s expert, expert -> b s expert",
                 {logits, bias}, {y});
      logits = y;
    }
    const TensorId weights = activation(build_, tokens_, "mlp.router.probabilities", count, type);
    const bool softmax = experts_.router == Router::softmax;
    build_.add(softmax ? OpKind::softmax : OpKind::sigmoid,
               softmax ? "mlp.router.softmax" : "mlp.router.sigmoid", "b s expert^ -> b s expert^",
               {logits}, {weights});
    return weights;
  }

  Builder& build_;
  TensorId x_;
  const Experts& experts_;
  Rows tokens_, slots_;
};

}  // namespace

std::int64_t Experts::capacity(std::int64_t sequence) const {
  const auto share = static_cast<double>(per_token * sequence) / static_cast<double>(count);
  return static_cast<std::int64_t>(std::ceil(share * capacity_factor));
}

double Experts::filled(std::int64_t sequence) const {
  return std::min(1.0, static_cast<double>(per_token * sequence) /
                           static_cast<double>(count * capacity(sequence)));
}

bool Experts::in_layer(std::int64_t layer) const {
  return count > 0 && layer >= plain && (layer + 1) % every == 0;
}

TensorId mixture_of_experts(Builder& build, TensorId x, const Experts& experts, const Mlp& expert) {
  return Mixture(build, x, experts).add(expert);
}

TensorId feed_forward(Builder& build, TensorId x, std::int64_t layer, const Experts& experts,
                      const Mlp& mlp) {
  if (experts.in_layer(layer)) return mixture_of_experts(build, x, experts, mlp);
  return model::mlp(build, tokens(build[x].shape[0], build[x].shape[1]), x, mlp);
}

void check_experts(const JsonReader& config, const Experts& experts, std::int64_t layers,
                   bool may_weigh_within) {
  for (const char* key : {"experts_per_token", "capacity_factor", "moe_every", "plain_layers",
                          "expert_width", "shared_experts", "router", "router_bias", "weigh"}) {
    if (config.has(key) && experts.count == 0) config.at(key).fail("experts beside it");
  }
  if (experts.count == 0) return;
  if (experts.per_token > experts.count)
    config.at("experts_per_token").fail("at most " + std::to_string(experts.count));
  if (!may_weigh_within && experts.weighing == Weighing::activation)
    config.at("weigh").fail("\"results\", since experts have biases or no fused swiglu");
  if (experts.every > layers) config.at("moe_every").fail("at most " + std::to_string(layers));
  if (experts.plain >= layers)
    config.at("plain_layers").fail("at most " + std::to_string(layers - 1));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (experts.in_layer(layer)) return;
  }
  config.at("moe_every").fail("a layer that is a mixture after the plain_layers");
}

}  // namespace stratagem::model
