// Rewrites a graph: runs of operators become parts that follow each other, and a sum.
#pragma once

#include <vector>

#include "model/operator_run.hpp"

namespace stratagem::model {

struct Division {
  OperatorRun run;
  int parts = 1;
};

struct Divided {
  Graph graph;
  /// By division and part: the part's operators, in order.
  std::vector<std::vector<std::vector<OpId>>> parts;
};

/// Makes `parts` copies of every operator of a run. Copy k works on the k-th equal range of the
/// dimension that the run divides, with that part of the run's activations and parameters (now
/// tensors of their own); the partial results are added up by explicit operators, each right after
/// its part. What the run reads whole, all parts read. The backward pass is derived anew;
/// parameters and FLOPs stay as many. Tensors of the forward pass keep their ids: a divided one is
/// its first part, and what leaves a run is its last sum; operators are numbered anew. Runs share
/// no operator.
/// Throws InputError where a dimension does not divide evenly.
Divided divide(const Graph&, const std::vector<Division>&);

}  // namespace stratagem::model
