// Prefix tuning: trained keys and values before those of the tokens, in a model that is frozen
// else.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/builder.hpp"

namespace stratagem::model {

/// Adds parameters `attention.prefix_WHAT` and puts them before the tokens' keys or values `x` of
/// shape (batch, heads, sequence, width): (batch, heads, prefix + sequence, width). Every sample
/// has the same prefix, every token sees all of it. Source: Li & Liang, Prefix-Tuning,
/// arXiv:2101.00190, section 4.2; the MLP through which they train it (4.3) and drop afterwards is
/// left out: the parameters are those of the prefix itself. `heads` is what annotations call that
/// dimension.
TensorId with_prefix(Builder& build, const std::string& what, TensorId x, std::int64_t prefix,
                     const std::string& heads);

/// The key "prefix" of a configuration.
template <typename Config>
Option<Config> prefix_option(std::int64_t Config::*member) {
  return {"prefix", member, whole(1),
          "prefix tuning: so many trained keys and values of every head before those of the "
          "tokens, in each layer; all else is frozen (with unfused attention)",
          "none"};
}
/// Refuses the key with an attention that is one kernel.
void check_prefix(const JsonReader& config, bool fused_attention);

/// The graph that trains nothing but such prefixes.
Graph train_prefixes_only(Graph graph);

}  // namespace stratagem::model
