// Dimensions chosen operator by operator, by patterns of their names.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pattern.hpp"
#include "model/graph.hpp"

namespace stratagem::strategies {

/// Pairs {pattern of operators' names, dimension that they divide}; "" replicates.
using NamedDimensions = std::vector<std::pair<std::string, std::string>>;

/// Does an entry match the operator, or the product before which it casts, and name a dimension
/// that its annotation allows to divide?
bool applies(const NamedDimensions::value_type& entry, const model::Operator& op);

/// The dimension of the last entry that matches the operator and names a dimension which its
/// annotation allows to divide; nullopt if none does.
std::optional<std::string> named_dimension(const NamedDimensions& entries,
                                           const model::Operator& op);

}  // namespace stratagem::strategies
