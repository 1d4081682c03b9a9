// Adds the parameters and the operator that copies both.
#include "model/zoo/prefix.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/freeze.hpp"

namespace stratagem::model {

TensorId with_prefix(Builder& build, const std::string& what, TensorId x, std::int64_t prefix,
                     const std::string& heads) {
  if (prefix == 0) return x;
  std::vector<std::int64_t> shape = build[x].shape;
  const DataType type = build[x].type;
  const TensorId rows =
      build.parameter("attention.prefix_" + what, {shape[1], prefix, shape[3]}, type);
  shape[2] += prefix;
  const TensorId y =
      build.tensor("attention.prepend_" + what + ".out", shape, type, Role::activation);
  std::string annotation = "b " + heads + " s^ d^, ";
  annotation += heads + " prefix^ d^ -> b ";
  annotation += heads + " t^ d^";
  build.add(OpKind::prepend, "attention.prepend_" + what, annotation, {x, rows}, {y});
  return y;
}

void check_prefix(const JsonReader& config, bool fused_attention) {
  const auto prefix = config.find("prefix");
  if (prefix && fused_attention)
    prefix->fail("no prefix with fused attention, whose kernel knows none");
}

Graph train_prefixes_only(Graph graph) {
  std::set<std::string> trained;  // what is copied in front of other rows
  for (const Operator& op : graph.operators) {
    if (op.kind == OpKind::prepend && op.pass == Pass::forward)
      trained.insert(graph.tensors[op.inputs[1]].name);
  }
  return freeze(std::move(graph),
                [&](const Tensor& parameter) { return !trained.contains(parameter.name); });
}

}  // namespace stratagem::model
