// Sizes copies of weights, and what products read of them.
#include "lowering/stack/casts.hpp"

#include "model/cast_products.hpp"

namespace stratagem::lowering {

bool needs_casts(const cost::Precision& precision) {
  return model::are_cast(precision.values, precision.products);
}

cost::Kernel on_operands_of(cost::Kernel kernel, const model::Graph& graph,
                            const model::Operator& op, const cost::Precision& precision) {
  const bool tensor_cores = kernel.kind == cost::KernelKind::gemm &&
                            kernel.type == precision.values &&
                            precision.products == model::DataType::tf32;
  if (tensor_cores) kernel.type = precision.products;
  if (!model::multiplies_cast(graph, op) || op.pass == model::Pass::weight_gradient) return kernel;
  const auto parameter = static_cast<double>(kernel.k * kernel.n * kernel.batch);
  kernel.traffic -=
      parameter * (model::size_of(precision.values) - model::size_of(precision.products));
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
