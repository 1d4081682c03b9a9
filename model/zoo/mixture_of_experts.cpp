// Builds router, dispatch, experts and combination.
#include "model/zoo/mixture_of_experts.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace stratagem::model {
namespace {

class Mixture {
 public:
  Mixture(Builder& build, TensorId x, const Experts& experts)
      : build_(build),
        x_(x),
        experts_(experts),
        batch_(build[x].shape[0]),
        sequence_(build[x].shape[1]),
        hidden_(build[x].shape[2]),
        type_(build[x].type) {}

  TensorId add() {
    const TensorId probabilities = router();
    const TensorId slots = build_.tensor("mlp.slots", {batch_, sequence_, experts_.per_token},
                                         DataType::int64, Role::mask);
    const TensorId sent = slotted("mlp.dispatch.out", hidden_);
    build_.add(OpKind::dispatch, "mlp.dispatch",
               "b s^ h, b s^ expert -> expert (b capacity^) h, b s^ choice^", {x_, probabilities},
               {sent, slots});
    const TensorId up = linear("mlp.fc1", sent, hidden_, experts_.inner);
    const std::string bend = "mlp." + to_text(experts_.activation);
    const TensorId bent = slotted(bend + ".out", experts_.inner);
    build_.add(experts_.activation, bend, "expert (b capacity^) n -> expert (b capacity^) n", {up},
               {bent});
    const TensorId down = linear("mlp.fc2", bent, experts_.inner, hidden_);
    const TensorId y = activation("mlp.combine.out", {batch_, sequence_, hidden_});
    build_.add(OpKind::combine, "mlp.combine",
               "expert+ (b capacity^) h, b s^ expert+, b s^ choice^ -> b s^ h",
               {down, probabilities, slots}, {y});
    return y;
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), type_, Role::activation);
  }
  TensorId slotted(const std::string& name, std::int64_t width) {
    return build_.tensor(name, {experts_.count, batch_ * experts_.capacity(sequence_), width},
                         type_, Role::activation, experts_.filled(sequence_));
  }

  TensorId router() {
    const std::vector<std::int64_t> shape = {batch_, sequence_, experts_.count};
    const TensorId weight = build_.parameter("mlp.router.weight", {experts_.count, hidden_}, type_);
    const TensorId logits = activation("mlp.router.logits", shape);
    build_.add(OpKind::contraction, "mlp.router", "b s k+, expert k+ -> b s expert", {x_, weight},
               {logits});
    const TensorId probabilities = activation("mlp.router.probabilities", shape);
    build_.add(OpKind::softmax, "mlp.router.softmax", "b s expert^ -> b s expert^", {logits},
               {probabilities});
    return probabilities;
  }

  /// One matrix and one bias for every expert.
  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out) {
    const TensorId weight = build_.parameter(name + ".weight", {experts_.count, out, in}, type_);
    const TensorId bias = build_.parameter(name + ".bias", {experts_.count, out}, type_);
    const TensorId product = slotted(name + ".product", out);
    build_.add(OpKind::contraction, name,
               "expert (b capacity^) k+, expert n k+ -> expert (b capacity^) n", {x, weight},
               {product});
    const TensorId y = slotted(name + ".out", out);
    build_.add(OpKind::bias_add, name + ".bias_add",
               "expert (b capacity^) n, expert n -> expert (b capacity^) n", {product, bias}, {y});
    return y;
  }

  Builder& build_;
  TensorId x_;
  const Experts& experts_;
  std::int64_t batch_, sequence_, hidden_;
  DataType type_;
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

TensorId mixture_of_experts(Builder& build, TensorId x, const Experts& experts) {
  return Mixture(build, x, experts).add();
}

std::int64_t mixture_of_experts_parameters(const Experts& e, std::int64_t hidden) {
  return e.count * (hidden + 2 * hidden * e.inner + e.inner + hidden);
}

}  // namespace stratagem::model
