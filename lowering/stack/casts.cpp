// Sizes copies of weights, and what products read of them.
#include "lowering/stack/casts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.hpp"
#include "model/annotation.hpp"
#include "model/cast_products.hpp"

namespace stratagem::lowering {

bool needs_casts(const cost::Precision& precision) {
  return model::are_cast(precision.values, precision.products);
}

namespace {

/// What a cast moves beyond reading once and writing one copy.
void add_copies(cost::Kernel& kernel, Bytes read, Bytes copy, const cost::Precision& precision) {
  kernel.traffic += (precision.copies - 1) * copy;
  if (precision.largest_first) kernel.traffic += read;
}

/// What libraries want of an operand's size along its rows, and across them, on every rank.
/// Source: Transformer Engine d0067d0d, pytorch/csrc/quantizer.cpp, MXFP8Quantizer and
/// NVFP4Quantizer, whose blocks are whole, and pytorch/utils.py, assert_dim_for_fp8_exec.
void check_multiples(const std::vector<std::int64_t>& shape, bool experts, const std::string& name,
                     model::DataType type) {
  const bool whole_blocks = type == model::DataType::mxfp8 || type == model::DataType::nvfp4;
  const std::int64_t along = whole_blocks ? model::block_of(type) : 16;
  const std::int64_t across = whole_blocks ? model::block_of(type) : 8;
  std::int64_t rows = 1;
  for (const std::int64_t size : shape) rows *= size;
  rows /= shape.back();
  // Tokens of an expert are padded.
  if (shape.back() % along == 0 && (experts || rows % across == 0)) return;
  throw InputError("", "/training/precision",
                   fmt::format("in {} operands of linear layers with rows of a multiple of {} "
                               "numbers, and a multiple of {} rows, on every rank",
                               model::to_text(type), along, across),
                   fmt::format("{} rows of {} before {}", rows, shape.back(), name));
}

}  // namespace

cost::Kernel on_operands_of(cost::Kernel kernel, const model::Graph& graph,
                            const model::Operator& op, const cost::Precision& precision) {
  const bool tensor_cores = kernel.kind == cost::KernelKind::gemm &&
                            kernel.type == precision.values &&
                            precision.products == model::DataType::tf32;
  if (tensor_cores) kernel.type = precision.products;
  if (!model::multiplies_cast(graph, op) || op.pass == model::Pass::weight_gradient) return kernel;
  const auto parameter = static_cast<double>(kernel.k * kernel.n * kernel.batch);
  kernel.traffic -=
      parameter * (model::size_of(precision.values) - model::size_in_weights(precision.products));
  return kernel;
}

void complete_cast(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   const std::vector<std::int64_t>& shape, const cost::Precision& precision) {
  const bool of_experts = model::dimension_of(op.annotation->outputs[0], "expert") >= 0;
  const std::string reader = op.name.substr(0, op.name.size() - model::cast_suffix.size());
  const model::DataType type = graph.tensors[op.outputs[0]].type;
  if (model::is_scaled(type)) check_multiples(shape, of_experts, reader, type);
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(size);
  add_copies(kernel, elements * model::size_of(graph.tensors[op.inputs[0]].type),
             elements * model::size_of(type), precision);
}

double read_scale(const model::Graph& graph, model::TensorId parameter, int segment) {
  for (const model::OpId id : graph.segments[segment].forward) {
    const model::Operator& op = graph.operators[id];
    if (std::ranges::count(op.inputs, parameter) == 0 || !model::multiplies_cast(graph, op))
      continue;
    return model::size_in_weights(graph.tensors[op.inputs[0]].type) /
           model::size_of(graph.tensors[parameter].type);
  }
  return 1;
}

Bytes copies_of(Bytes bytes, model::DataType type, const cost::Precision& precision) {
  return precision.copies * (model::size_in_weights(precision.products) / model::size_of(type)) *
         bytes;
}

cost::Kernel cast_kernel(Bytes bytes, model::DataType type, const cost::Precision& precision) {
  const Bytes copy = model::size_in_weights(precision.products) / model::size_of(type) * bytes;
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::elementwise;
  kernel.type = type;
  kernel.traffic = bytes + copy;
  add_copies(kernel, bytes, copy, precision);
  return kernel;
}

}  // namespace stratagem::lowering
