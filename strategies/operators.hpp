// Dimensions chosen operator by operator, by patterns of their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/graph.hpp"

namespace stratagem::strategies {

/// Pairs {pattern of operators' names, dimension that they divide}; "" replicates.
using NamedDimensions = std::vector<std::pair<std::string, std::string>>;

/// Does a whole name match? `*` stands for any text, also for none; all else for itself.
bool matches(std::string_view name, std::string_view pattern);

/// What the last entry says that names the operator and a dimension which its annotation lets it
/// divide; nullopt if no entry does.
std::optional<std::string> named_dimension(const NamedDimensions& entries,
                                           const model::Operator& op);

}  // namespace stratagem::strategies
