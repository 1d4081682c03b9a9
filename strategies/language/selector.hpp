// Which operators or segments of a graph a plan speaks of: patterns of their names, or a stage.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::strategies {

/// What selectors are read against.
struct SelectorScope {
  const model::Graph& graph;
  const std::vector<std::vector<int>>& stages;  ///< segments of every stage
  /// Names that stage(...) may use besides S, the number of stages.
  std::vector<std::pair<std::string, std::int64_t>> values;
};

/// A selector is a list, separated by commas, of patterns (see Glob) of names and of stage(x), x
/// being an expression such as S-1. Returns the ids of the forward operators that any of the list
/// names, ascending. Throws InputError at `path` for text of another form, for a stage that does
/// not exist, and for an item of the list that names nothing.
std::vector<model::OpId> select_operators(const std::string& selector, const SelectorScope& scope,
                                          const std::string& path);
/// The same for segments: patterns are of their names ("layers.*", "head").
std::vector<int> select_segments(const std::string& selector, const SelectorScope& scope,
                                 const std::string& path);

/// The names that the stages of a selector use besides S: of "stage(i), head" that is i.
std::vector<std::string> stage_variables(const std::string& selector, const std::string& path);

}  // namespace stratagem::strategies
