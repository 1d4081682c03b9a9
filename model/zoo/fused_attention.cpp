// Adds the operator and its two results.
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {

TensorId fused_attention(Builder& build, const std::string& name, const FusedAttentionInputs& of,
                         std::int64_t heads, bool causal) {
  const std::vector<std::int64_t> q = build[of.queries].shape;  // b s g e
  const std::int64_t groups = q[2];
  const TensorId result = build.tensor(name + ".out", {q[0], q[1], groups * q[3]},
                                       build[of.queries].type, Role::activation);
  const TensorId sums = build.tensor(name + ".log_sums", {q[0], q[1], groups, heads / groups},
                                     DataType::fp32, Role::statistic);
  build.add(causal ? OpKind::fused_attention : OpKind::fused_attention_to_all, name,
            "b s g e^, b t^ g d^, b t^ g d^ -> b s (g e^), b s g queries^",
            {of.queries, of.keys, of.values}, {result, sums});
  return result;
}

}  // namespace stratagem::model
