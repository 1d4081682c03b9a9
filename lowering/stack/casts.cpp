// Recognises linear layers by their operands, and sizes their casts.
#include "lowering/stack/casts.hpp"

#include <algorithm>

namespace stratagem::lowering {
namespace {

using model::TensorId;

int segment_of_loss(const model::Graph& graph) {
  const auto found = std::find_if(
      graph.operators.rbegin(), graph.operators.rend(), [&](const model::Operator& op) {
        return op.pass == model::Pass::forward && std::ranges::count(op.outputs, graph.loss) > 0;
      });
  return found == graph.operators.rend() ? -1 : found->segment;
}

bool is_parameter(const model::Graph& graph, TensorId tensor) {
  return graph.tensors[tensor].role == model::Role::parameter;
}

}  // namespace

bool needs_casts(const cost::Precision& precision) {
  return precision.products != precision.values && precision.products != model::DataType::tf32;
}

bool casts_operands(const model::Graph& graph, const model::Operator& op,
                    const cost::Precision& precision) {
  if (!needs_casts(precision) || op.kind != model::OpKind::contraction) return false;
  const model::Operator& forward = op.forward < 0 ? op : graph.operators[op.forward];
  const bool linear = std::ranges::any_of(
      forward.inputs, [&](TensorId tensor) { return is_parameter(graph, tensor); });
  return linear && forward.segment != segment_of_loss(graph);
}

std::set<TensorId> cast_parameters(const model::Graph& graph, const cost::Precision& precision) {
  std::set<TensorId> parameters;
  if (!needs_casts(precision)) return parameters;
  for (const model::Operator& op : graph.operators) {
    if (op.pass != model::Pass::forward || !casts_operands(graph, op, precision)) continue;
    for (const TensorId tensor : op.inputs) {
      if (is_parameter(graph, tensor)) parameters.insert(tensor);
    }
  }
  return parameters;
}

bool casts_operand(const model::Graph& graph, const model::Operator& op, TensorId operand,
                   const cost::Precision& precision) {
  if (!casts_operands(graph, op, precision) || is_parameter(graph, operand)) return false;
  const bool gradient = graph.tensors[operand].role == model::Role::gradient;
  return gradient || op.pass == model::Pass::forward;
}

cost::Kernel on_cast_operands(cost::Kernel kernel, const model::Graph& graph,
                              const model::Operator& op, const cost::Precision& precision) {
  const bool tensor_cores = kernel.kind == cost::KernelKind::gemm &&
                            kernel.type == precision.values &&
                            precision.products == model::DataType::tf32;
  if (tensor_cores) kernel.type = precision.products;
  if (!casts_operands(graph, op, precision)) return kernel;
  const Bytes saved = model::size_of(precision.values) - model::size_of(precision.products);
  const double operands = static_cast<double>(kernel.m * kernel.k + kernel.k * kernel.n) *
                          static_cast<double>(kernel.batch);
  kernel.type = precision.products;
  kernel.traffic -= operands * saved;
  return kernel;
}

Bytes copies_of(Bytes bytes, model::DataType type, const cost::Precision& precision) {
  return 2 * (model::size_of(precision.products) / model::size_of(type)) * bytes;
}

cost::Kernel cast_kernel(Bytes bytes, model::DataType type, const cost::Precision& precision) {
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::elementwise;
  kernel.type = type;
  kernel.traffic = bytes + copies_of(bytes, type, precision);
  return kernel;
}

}  // namespace stratagem::lowering
