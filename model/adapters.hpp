// Low-rank adapters (LoRA) beside the linear layers of a model that is frozen else.
#pragma once

#include <cstdint>
#include <functional>

#include "model/graph.hpp"

namespace stratagem::model {

/// Beside each product W x whose weight `adapted` accepts stands B (A x), with A of (rank, width of
/// x) and B of (width of W x, rank); both are added up. Nothing but A and B is trained, in the
/// weight's type; they read x as it is before a cast. Only weights of two dimensions take one, one
/// matrix for all tokens, and no table that is looked up. Not modelled: dropout before A, and a
/// scale of the sum. Source: Hu et al., LoRA, arXiv:2106.09685, section 4.1. The backward pass is
/// derived anew.
Graph with_adapters(Graph graph, std::int64_t rank,
                    const std::function<bool(const Tensor& weight)>& adapted);

/// Is it the weight of a product that with_adapters can stand beside?
bool takes_adapter(const Graph& graph, TensorId weight);

}  // namespace stratagem::model
