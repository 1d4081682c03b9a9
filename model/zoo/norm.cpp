// Adds a norm's parameters, its result and what it keeps of every row.
#include "model/zoo/norm.hpp"

namespace stratagem::model {

TensorId norm(Builder& build, OpKind kind, const std::string& name, TensorId x, NormedRows of) {
  const bool centred = kind == OpKind::layer_norm;
  const std::vector<std::int64_t> shape = build[x].shape;
  const DataType type = build[x].type;
  if (of.size == 0) of.size = shape.back();
  if (of.shape.empty()) of.shape.assign(shape.begin(), shape.end() - 1);
  std::vector<TensorId> operands = {x, build.parameter(name + ".scale", {of.size}, type)};
  if (centred) operands.push_back(build.parameter(name + ".shift", {of.size}, type));
  const TensorId y = build.tensor(name + ".out", shape, type, Role::activation);
  of.shape.push_back(centred ? 2 : 1);
  const TensorId statistics =
      build.tensor(name + ".statistics", of.shape, DataType::fp32, Role::statistic);
  std::string annotation = of.dims + ", " + of.width;
  if (centred) annotation += ", " + of.width;
  annotation += " -> " + of.dims + ", " + of.rows + (centred ? " two^" : " one^");
  build.add(kind, name, annotation, operands, {y, statistics});
  return y;
}

}  // namespace stratagem::model
