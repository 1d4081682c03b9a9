// One operator, applied to the parts of its operands that a rank has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/value.hpp"
#include "kernels/operand.hpp"
#include "kernels/philox.hpp"
#include "model/graph.hpp"

namespace stratagem::execute {

/// Operands lie as the operator's annotation has them, each a part of its tensor. Results are there
/// already, with zeros, or with what is to be added to.
template <typename T>
struct Application {
  const model::Graph& graph;
  const model::Operator& op;
  std::vector<Shared<T>> inputs;
  std::vector<Shared<T>> outputs;
  kernels::RandomStream random;  ///< of the micro-batch and iteration; each tensor has its own
  double dropout = 0.1;          ///< probability that an element is dropped
  double loss_weight = 1;        ///< gradient of every row's loss

  [[nodiscard]] kernels::In<T> in(std::size_t i) const { return inputs[i]->data; }
  [[nodiscard]] kernels::Out<T> out(std::size_t i) const { return outputs[i]->data; }
  [[nodiscard]] bool is_forward() const { return op.pass == model::Pass::forward; }
  /// The forward operator of a backward one; itself of a forward one.
  [[nodiscard]] const model::Operator& forward() const {
    return op.forward >= 0 ? graph.operators[op.forward] : op;
  }
};

/// Rows of the last dimension of a value.
template <typename T>
kernels::Rows rows_of(const Value<T>& value) {
  const std::int64_t columns = value.region.shape().back();
  return {.rows = columns == 0 ? 0 : value.region.size() / columns, .columns = columns};
}

/// Rows that a norm, or a gradient of one, works on. They are as wide as its scale, which may be
/// less than the last dimension: of queries that share a key, those of one group lie in a row.
template <typename T>
kernels::Rows normed_rows_of(const Application<T>& a) {
  const auto& scale = a.op.pass == model::Pass::weight_gradient ? *a.outputs[0]
                      : a.is_forward()                          ? *a.inputs[1]
                                                                : *a.inputs[3];
  const std::int64_t columns = scale.region.size();
  return {.rows = columns == 0 ? 0 : a.inputs[0]->region.size() / columns, .columns = columns};
}

/// What runs the kernels.
enum class Backend : std::uint8_t { cpu, cuda };

/// Why there is no kernel of a backend for an operator; "" if there is one.
std::string refusal(const model::Graph& graph, const model::Operator& op, Backend backend);

/// How processors compute a kind of operator: a row in the file that does it; all.cpp names the
/// files.
struct Execution {
  std::string_view kind;
  void (*in_float)(const Application<float>&) = nullptr;
  void (*in_double)(const Application<double>&) = nullptr;
  /// Of which of its operators there is no kernel, and why; null: of none.
  std::string (*refuses)(const model::Graph&, const model::Operator&, Backend) = nullptr;
  std::string_view not_on_gpu = {};  ///< what GPUs have no kernels for; "": they have
  std::string_view not_at_all = {};  ///< why there is nothing to compute
};
template <typename Run>
Execution computed(std::string_view kind, const Run& run) {
  return {.kind = kind, .in_float = run, .in_double = run};
}

/// All of them.
const std::vector<Execution>& executions();

/// Expects an operator that is not refused.
template <typename T>
void apply(const Application<T>& application);

}  // namespace stratagem::execute
