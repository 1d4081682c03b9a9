// Random small networks: chains and diamonds of matrix products, elementwise operators and norms.
#pragma once

#include <string>
#include <utility>

#include "model/builder.hpp"
#include "tests/random_cases.hpp"

namespace stratagem::sim {

/// Every operator has a name of its own within the whole graph, so that no two segments share
/// blocks.
class RandomGraph {
 public:
  model::Graph build() {
    build_.begin_segment("s0");
    x_ = build_.tensor("input", shape, type, model::Role::input);
    bias();  // something to train before everything else
    const int segments = pick(1, 4);
    for (int i = 0; i < segments; ++i) {
      if (i > 0) build_.begin_segment("s" + std::to_string(i));
      for (int count = pick(1, 3); count > 0; --count) add_any();
    }
    gelu();
    return std::move(build_).finish(x_);
  }

 private:
  inline static const std::vector<std::int64_t> shape = {24, 12, 24};
  static constexpr model::DataType type = model::DataType::fp16;

  std::string name() { return "op" + std::to_string(next_++); }
  model::TensorId activation(const std::string& of) {
    return build_.tensor(of + ".out", shape, type, model::Role::activation);
  }
  void add(model::OpKind kind, const std::string& annotation,
           const std::vector<std::vector<std::int64_t>>& parameters) {
    const std::string op = name();
    std::vector<model::TensorId> inputs = {x_};
    for (std::size_t i = 0; i < parameters.size(); ++i)
      inputs.push_back(build_.parameter(op + ".p" + std::to_string(i), parameters[i], type));
    x_ = activation(op);
    std::vector<model::TensorId> outputs = {x_};
    if (kind == model::OpKind::layer_norm) {
      outputs.push_back(build_.tensor(op + ".statistics", {shape[0], shape[1], 2},
                                      model::DataType::fp32, model::Role::statistic));
    }
    build_.add(kind, op, annotation, inputs, outputs);
  }

  void bias() { add(model::OpKind::bias_add, "b s n, n -> b s n", {{shape[2]}}); }
  void gelu() { add(model::OpKind::gelu, "b s n -> b s n", {}); }
  void product() {
    add(model::OpKind::contraction, "b s k+, n k+ -> b s n", {{shape[2], shape[2]}});
  }
  void norm() {
    add(model::OpKind::layer_norm, "b s h^, h^, h^ -> b s h^, b s two^", {{shape[2]}, {shape[2]}});
  }
  /// A product beside the identity.
  void diamond() {
    const model::TensorId before = x_;
    product();
    const std::string op = name();
    const model::TensorId sum = activation(op);
    build_.add(model::OpKind::add, op, "b s n, b s n -> b s n", {x_, before}, {sum});
    x_ = sum;
  }
  void add_any() {
    switch (pick(0, 4)) {
      case 0:
        return bias();
      case 1:
        return gelu();
      case 2:
        return norm();
      case 3:
        return diamond();
      default:
        return product();
    }
  }

  model::Builder build_{"random"};
  model::TensorId x_ = -1;
  int next_ = 0;
};

}  // namespace stratagem::sim
