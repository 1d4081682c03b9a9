// The part of an attention layer whose activations grow with the square of the number of tokens.
#pragma once

#include <vector>

#include "model/graph.hpp"

namespace stratagem::model {

/// Every attention core of a segment: from the product of two activations (queries and keys) that
/// gives each pair of tokens a score, over the operators that work on scores one by one or row by
/// row, to the product with a third activation (values) that sums over one token of the pair; or
/// the one operator that does all this.
/// Forward operators in order. Known by structure, never by name.
std::vector<std::vector<OpId>> attention_cores(const Graph&, const Segment&);

}  // namespace stratagem::model
