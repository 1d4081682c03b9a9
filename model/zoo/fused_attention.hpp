// Attention as one kernel that keeps no scores, with heads of their own or shared ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "model/builder.hpp"

namespace stratagem::model {

/// The documents that are packed into a sample.
struct Documents {
  std::int64_t count = 0;                  ///< so many, all as long; 0: as `lengths` say
  std::vector<std::int64_t> lengths = {};  ///< in tokens; empty: the sample is one document
  [[nodiscard]] bool any() const { return count > 0 || !lengths.empty(); }
  /// Their lengths in a sample of so many tokens.
  [[nodiscard]] std::vector<std::int64_t> in(std::int64_t tokens) const;
  friend bool operator==(const Documents&, const Documents&) = default;
};

/// Which tokens a token sees.
struct Sight {
  bool causal = true;           ///< those up to itself; else all
  std::int64_t window = 0;      ///< of these so many of the last, itself among them; 0: all
  std::int64_t full_every = 0;  ///< with a window: layers n, 2n, ... see all, from 1; 0: none
  /// A trained score of every head beside those of the tokens, which takes probability and gives
  /// no value. Xiao et al., Efficient Streaming Language Models with Attention Sinks,
  /// arXiv:2309.17453, section 3.3.
  bool sinks = false;
  Documents documents = {};  ///< tokens see those of their own document alone
  /// What a layer sees, counted from 0.
  [[nodiscard]] Sight of_layer(std::int64_t layer) const {
    Sight sight = *this;
    if (full_every > 0 && (layer + 1) % full_every == 0) sight.window = 0;
    return sight;
  }
  friend bool operator==(const Sight&, const Sight&) = default;
};

/// What a core of attention works on.
struct CoreInputs {
  TensorId queries, keys, values;
};

/// Queries (batch, sequence, groups, queries * head), keys and values (batch, sequence, groups,
/// head), or values of another width. A group's queries share its key and value. Where keys and
/// values are as wide as queries, each query has its own. Returns (batch, sequence, groups *
/// queries * width of a value). For the backward pass its operands, its result and the logarithm of
/// every row's sum (fp32) are kept. Source: Dao, FlashAttention-2, arXiv:2307.08691, algorithms 1
/// and 2.
TensorId fused_attention(Builder& build, const std::string& name, const CoreInputs& of,
                         std::int64_t heads, const Sight& sight);

/// Keys and values of tokens that were computed before, for whoever generates token by token.
struct Cache {
  std::int64_t room = 0;    ///< tokens of each sample that it holds; 0: there is none
  std::int64_t tokens = 0;  ///< of these, those before the sequence's own
  friend bool operator==(const Cache&, const Cache&) = default;
};

/// The same of causal attention with caches, which nothing is trained through: the kernel writes
/// the sequence's keys and values behind those that stand there, and reads them all. Two caches
/// (batch, room, groups, head) are added, which stay from pass to pass. Source:
/// flash_attn_with_kvcache of FlashAttention-2.
TensorId cached_attention(Builder& build, const std::string& name, const CoreInputs& of,
                          std::int64_t heads, const Cache& cache);

/// The key "attention" of a configuration.
template <typename Config, typename Place>
Option<Config> fused_attention_option(Place fused) {
  return {"attention", fused, choice<bool>({{"unfused", false}, {"fused", true}}),
          "in parts, or one kernel that keeps no probabilities (FlashAttention; wants a profile "
          "with `attention`)"};
}

}  // namespace stratagem::model
