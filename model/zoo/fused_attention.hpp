// Attention as one kernel that keeps no scores, with heads of their own or shared ones.
#pragma once

#include <string>

#include "base/options.hpp"
#include "model/builder.hpp"

namespace stratagem::model {

struct FusedAttentionInputs {
  TensorId queries, keys, values;
};

/// Queries (batch, sequence, groups, queries * head), keys and values (batch, sequence, groups,
/// head). A group's queries share its key and value. Where keys and values are as wide as queries,
/// each query has its own. `causal`: a token sees those up to itself, else all. Returns (batch,
/// sequence, groups * queries * head). For the backward pass its operands, its result and the
/// logarithm of every row's sum (fp32) are kept. Source: Dao, FlashAttention-2, arXiv:2307.08691,
/// algorithms 1 and 2.
TensorId fused_attention(Builder& build, const std::string& name, const FusedAttentionInputs& of,
                         std::int64_t heads, bool causal);

/// The key "attention" of a configuration.
template <typename Config, typename Place>
Option<Config> fused_attention_option(Place fused) {
  return {"attention", fused, choice<bool>({{"unfused", false}, {"fused", true}}),
          "in parts, or one kernel that keeps no probabilities (FlashAttention; wants a profile "
          "with `attention`)"};
}

}  // namespace stratagem::model
