// Runs of operators that can divide one dimension together, such as the heads of an attention.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::model {

/// Forward operators of one segment that all divide one dimension, each under its own identifier:
/// from matrices of which the columns are divided to the product with a parameter that sums over
/// them. Nothing else reads what they compute before that product, nor the parameters that are
/// divided. So a part of a run needs nothing of another part, and leaves a partial sum.
struct OperatorRun {
  std::vector<OpId> operators;        ///< in order; the last one sums
  std::map<OpId, std::string> split;  ///< by operator: the identifier that it divides
};

/// All runs, in the order of their last operators: attention from the projections of queries, keys
/// and values to the output's, an MLP from its first matrix to its last one. Two may share an
/// operator where matrices follow each other without anything between.
std::vector<OperatorRun> operator_runs(const Graph&);

}  // namespace stratagem::model
