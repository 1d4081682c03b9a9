// Adds dropout to a graph: one operator with two results, the values and the mask.
#include "model/zoo/dropout.hpp"

#include <vector>

namespace stratagem::model {

TensorId dropout(Builder& build, const std::string& name, TensorId x, const std::string& dims,
                 OpKind kind) {
  const std::vector<std::int64_t> shape = build[x].shape;
  const TensorId y = build.tensor(name + ".out", shape, build[x].type, Role::activation);
  const TensorId mask = build.tensor(name + ".mask", shape, DataType::int8, Role::mask);
  std::string annotation = dims;
  annotation += " -> " + dims;
  annotation += ", " + dims;
  build.add(kind, name, annotation, {x}, {y, mask});
  return y;
}

}  // namespace stratagem::model
