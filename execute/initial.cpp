// Random numbers by position.
#include "execute/initial.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "kernels/philox.hpp"

namespace stratagem::execute {
namespace {

using model::OpKind;
using model::TensorId;

bool is_scale(const model::Graph& graph, TensorId parameter) {
  return std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
    const bool norm = op.kind == OpKind::layer_norm || op.kind == OpKind::rms_norm;
    return norm && op.pass == model::Pass::forward && op.inputs[1] == parameter;
  });
}

/// The operator of a kind that reads an input, forward; nullptr if there is none.
const model::Operator* reader(const model::Graph& graph, TensorId input, OpKind kind) {
  const auto found = std::ranges::find_if(graph.operators, [&](const model::Operator& op) {
    return op.kind == kind && op.pass == model::Pass::forward &&
           std::ranges::find(op.inputs, input) != op.inputs.end();
  });
  return found == graph.operators.end() ? nullptr : &*found;
}

/// Labels of tokens are those that come next in the last lookup in the table of words, which has a
/// row for each of their classes; other tokens, positions and types have a stream of their own.
bool has_labels(const model::Graph& graph, const model::Operator& lookup) {
  const std::int64_t entries = graph.tensors[lookup.inputs[1]].shape.front();
  const auto is_forward = [](const model::Operator& op, OpKind kind) {
    return op.kind == kind && op.pass == model::Pass::forward;
  };
  const bool labelled = std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
    return is_forward(op, OpKind::pick) && graph.tensors[op.inputs[1]].shape.size() > 1 &&
           graph.tensors[op.inputs[0]].shape.back() == entries;
  });
  return labelled && std::ranges::none_of(graph.operators, [&](const model::Operator& op) {
           return is_forward(op, OpKind::embedding) && op.inputs[1] == lookup.inputs[1] &&
                  op.inputs[0] > lookup.inputs[0];
         });
}

/// Numbers by place: the gradient of the loss, an image or other features. What a forward pass
/// hands to the next one is 0 in the first.
template <typename T>
Shared<T> features(const model::Graph& graph, TensorId tensor, const Region& region,
                   const kernels::RandomStream& random, double loss_weight) {
  Shared<T> value = zeros<T>(region);
  if (tensor == graph.gradient_of[graph.loss]) {
    std::ranges::fill(value->data, static_cast<T>(loss_weight));
    return value;
  }
  if (std::ranges::count(graph.recycled, tensor, &std::pair<TensorId, TensorId>::second) > 0)
    return value;
  const std::vector<std::int64_t> at =
      places(model::origin_of(graph.tensors[tensor], tensor), region);
  for (std::size_t i = 0; i < at.size(); ++i)
    value->data[i] =
        static_cast<T>(2 * kernels::uniform(random, static_cast<std::uint64_t>(at[i])) - 1);
  return value;
}

}  // namespace

template <typename T>
void initialize(const model::Graph& graph, TensorId parameter, std::uint64_t seed,
                Value<T>& value) {
  const model::Origin origin = model::origin_of(graph.tensors[parameter], parameter);
  const std::vector<std::int64_t>& shape = origin.shape;
  const double center = is_scale(graph, parameter) ? 1 : 0;
  const double reach =
      shape.size() > 1 ? std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])) : 0.1;
  const kernels::RandomStream random{.seed = seed,
                                     .stream = static_cast<std::uint64_t>(origin.tensor)};
  const std::vector<std::int64_t> at = places(origin, value.region);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double number = kernels::uniform(random, static_cast<std::uint64_t>(at[i]));
    value.data[i] = static_cast<T>(center + reach * (2 * number - 1));
  }
}

template <typename T>
Shared<T> input(const model::Graph& graph, TensorId tensor, const Region& region,
                std::uint64_t seed, std::uint64_t micro_batch, double loss_weight) {
  // An input has its own random numbers, except tokens and their labels, which share a sequence.
  const kernels::RandomStream own{.seed = ~seed + 1 + static_cast<std::uint64_t>(tensor),
                                  .stream = micro_batch};
  if (graph.tensors[tensor].type != model::DataType::int64)
    return features<T>(graph, tensor, region, own, loss_weight);
  const model::Operator* lookup = reader(graph, tensor, OpKind::embedding);
  const model::Operator* choice = reader(graph, tensor, OpKind::pick);
  expects(lookup != nullptr || choice != nullptr, "inputs of a model are tokens or labels");
  const TensorId classes = lookup != nullptr ? lookup->inputs[1] : choice->inputs[0];
  const std::vector<std::int64_t>& sizes = graph.tensors[classes].shape;
  const std::int64_t count = lookup != nullptr ? sizes.front() : sizes.back();
  const std::vector<std::int64_t>& shape = graph.tensors[tensor].shape;
  const bool alone = lookup != nullptr && !has_labels(graph, *lookup);
  const kernels::RandomStream random = alone ? own : kernels::RandomStream{~seed, micro_batch};
  auto value = std::make_shared<Value<T>>();
  value->region = region;
  std::vector<std::int64_t> numbers;
  for (const std::int64_t place : places(model::origin_of(graph.tensors[tensor], tensor), region)) {
    const std::int64_t sample = place / shape.back(), token = place % shape.back();
    const std::int64_t at = sample * (shape.back() + 1) + token + (lookup != nullptr ? 0 : 1);
    const double number = kernels::uniform(random, static_cast<std::uint64_t>(at));
    numbers.push_back(
        std::min(count - 1, static_cast<std::int64_t>(number * static_cast<double>(count))));
  }
  value->numbers = Elements<std::int64_t>(std::move(numbers));
  return value;
}

#define INSTANTIATE(T)                                                                     \
  template void initialize<T>(const model::Graph&, TensorId, std::uint64_t, Value<T>&);    \
  template Shared<T> input<T>(const model::Graph&, TensorId, const Region&, std::uint64_t, \
                              std::uint64_t, double);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace stratagem::execute
