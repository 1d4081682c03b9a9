// Adds the operator and its two results.
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {

TensorId fused_attention(Builder& build, const std::string& name, TensorId queries, TensorId keys,
                         TensorId values, std::int64_t heads) {
  const std::vector<std::int64_t> q = build[queries].shape;  // b s g e
  const std::int64_t groups = q[2];
  const TensorId result = build.tensor(name + ".out", {q[0], q[1], groups * q[3]},
                                       build[queries].type, Role::activation);
  const TensorId sums = build.tensor(name + ".log_sums", {q[0], q[1], groups, heads / groups},
                                     DataType::fp32, Role::statistic);
  build.add(OpKind::fused_attention, name,
            "b s g e^, b t^ g d^, b t^ g d^ -> b s (g e^), b s g queries^", {queries, keys, values},
            {result, sums});
  return result;
}

}  // namespace stratagem::model
