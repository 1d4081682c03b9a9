// Matches entries to operators.
#include "strategies/parallel/named_dimensions.hpp"

#include <algorithm>

namespace stratagem::strategies {

bool applies(const NamedDimensions::value_type& entry, const model::Operator& op) {
  const auto& [pattern, dim] = entry;
  return matches(op.name, pattern) && (dim.empty() || model::may_split(*op.annotation, dim));
}

std::optional<std::string> named_dimension(const NamedDimensions& entries,
                                           const model::Operator& op) {
  const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                 [&](const auto& entry) { return applies(entry, op); });
  return last == entries.rend() ? std::nullopt : std::optional(last->second);
}

}  // namespace stratagem::strategies
