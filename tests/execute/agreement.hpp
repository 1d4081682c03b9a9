// Holds what a plan trains against what one device does.
#pragma once

#include <map>
#include <string>

#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute {

constexpr int micro_batches = 4;

/// With sanitizers it runs every third strategy only.
inline void check_agreement(const model::Graph& graph, const std::string& strategy) {
  static std::size_t number = 0;
  if (number++ % stride(3) != 0) return;
  CAPTURE(strategy);
  static std::map<const model::Graph*, Trained> references;
  if (!references.contains(&graph))
    references.emplace(&graph, train<double>(planned(graph, "{}", micro_batches)));
  const Trained& reference = references.at(&graph);
  CHECK(distance(train<double>(planned(graph, strategy, micro_batches)), reference) <= 1e-9);
}

}  // namespace stratagem::execute
