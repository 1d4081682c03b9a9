// GPTs in any precision, how they are trained, and what a device holds of them.
#pragma once

#include <string>
#include <utility>

#include "model/cast_products.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering {

inline cost::Training training(const std::string& precision,
                               const std::string& optimizer = "adam") {
  return {cost::precision_named(precision), cost::optimizer_named(optimizer)};
}

/// Every parameter has a multiple of 1,024 elements; norms and biases have fewer than 4,096,
/// matrices multiples of 2,048.
inline model::Graph even_gpt(const cost::Precision& precision, bool tied = false) {
  model::Graph graph = model::gpt({.layers = 2,
                                   .hidden = 1024,
                                   .heads = 8,
                                   .sequence = 8,
                                   .vocabulary = 2048,
                                   .batch = 1024,
                                   .type = precision.values,
                                   .tied = tied});
  if (model::are_cast(precision.values, precision.products))
    graph = model::cast_products(std::move(graph), precision.products);
  model::hold_gradients_in(graph, precision.gradients);
  return graph;
}

/// Bytes that the first device always has of a category.
inline double held(const program::Program& program, program::Category category) {
  return resident(program.sequences[0], category).value;
}

/// A strategy of so many data ranks.
inline std::string zero(int stage, int ranks) {
  return "{\"data\": " + std::to_string(ranks) + ", \"zero\": " + std::to_string(stage) + "}";
}

}  // namespace stratagem::lowering
