// Training some of a model's parameters.
#pragma once

#include <functional>

#include "model/graph.hpp"

namespace stratagem::model {

/// The graph of a training that leaves the parameters alone which `frozen` accepts: they have
/// neither gradients nor optimizer steps, and where nothing before an operator is trained, nothing
/// is kept or computed for its backward pass. The backward pass is derived anew; forward operators
/// and their tensors keep their ids. What was frozen before stays so.
Graph freeze(Graph graph, const std::function<bool(const Tensor& parameter)>& frozen);

/// Does a graph train any parameter?
bool trains_any(const Graph& graph);

}  // namespace stratagem::model
