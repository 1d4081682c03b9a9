// The reverse of selecting: patterns that name given operators and no others, for printing plans.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::strategies {

/// A selector that names exactly `chosen` among `all`: a small list of patterns, such as
/// "layers.*.mlp.{fc1,fc2}, head.**"; "" if nothing is chosen. Expects `chosen` to be among `all`,
/// names to differ, and their parts to be of letters, digits, _ and -.
std::string summarize(const std::vector<std::string>& chosen, const std::vector<std::string>& all);
/// The same for forward operators and for segments of a graph.
std::string selector_of_operators(const model::Graph& graph, const std::vector<model::OpId>& ops);
std::string selector_of_segments(const model::Graph& graph, const std::vector<int>& segments);

}  // namespace stratagem::strategies
