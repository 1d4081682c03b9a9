// Prefix tuning: trained keys and values before those of the tokens, in a model that is frozen
// else.
#pragma once

#include <string>

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

/// The graph that trains nothing but such prefixes.
Graph train_prefixes_only(Graph graph);

}  // namespace stratagem::model
