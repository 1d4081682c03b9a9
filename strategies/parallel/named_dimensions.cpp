// Matches entries to operators.
#include "strategies/parallel/named_dimensions.hpp"

#include <algorithm>

#include "model/cast_products.hpp"

namespace stratagem::strategies {
namespace {

/// A cast goes by the name of the product before which it stands, too, so that both are divided
/// alike. Of several products that read a cast it stands before the first.
bool names(const std::string& pattern, const model::Operator& op) {
  if (matches(op.name, pattern)) return true;
  return op.kind == model::OpKind::cast && op.name.ends_with(model::cast_suffix) &&
         matches(op.name.substr(0, op.name.size() - model::cast_suffix.size()), pattern);
}

}  // namespace

bool applies(const NamedDimensions::value_type& entry, const model::Operator& op) {
  const auto& [pattern, dim] = entry;
  return names(pattern, op) && (dim.empty() || model::may_split(*op.annotation, dim));
}

std::optional<std::string> named_dimension(const NamedDimensions& entries,
                                           const model::Operator& op) {
  const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                 [&](const auto& entry) { return applies(entry, op); });
  return last == entries.rend() ? std::nullopt : std::optional(last->second);
}

}  // namespace stratagem::strategies
