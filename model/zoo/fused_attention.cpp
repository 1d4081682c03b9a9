// Adds the operator, what it reads besides heads, and its two results.
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {

TensorId fused_attention(Builder& build, const std::string& name, const CoreInputs& of,
                         std::int64_t heads, const Sight& sight) {
  const std::vector<std::int64_t> q = build[of.queries].shape;  // b s g e
  const std::int64_t groups = q[2];
  const DataType type = build[of.queries].type;
  const std::int64_t key = build[of.keys].shape[3], value = build[of.values].shape[3];
  std::vector<TensorId> operands = {of.queries, of.keys, of.values};
  std::string annotation = "b s g e^, b t^ g d^, b t^ g w^";
  if (sight.sinks) {
    operands.push_back(build.parameter(name + ".sinks", {groups, heads / groups}, type));
    annotation += ", g queries^";
  }
  const TensorId result = build.tensor(name + ".out", {q[0], q[1], groups * q[3] / key * value},
                                       type, Role::activation);
  const TensorId sums = build.tensor(name + ".log_sums", {q[0], q[1], groups, heads / groups},
                                     DataType::fp32, Role::statistic);
  const OpId core =
      build.add(sight.causal ? OpKind::fused_attention : OpKind::fused_attention_to_all, name,
                annotation + " -> b s (g o^), b s g queries^", operands, {result, sums});
  if (sight.window > 0) build.set_window(core, sight.window);
  return result;
}

}  // namespace stratagem::model
