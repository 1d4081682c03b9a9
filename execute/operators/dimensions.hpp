// Dimensions of operands by name, and where one operand has what belongs to elements of another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/annotation.hpp"

namespace stratagem::execute {

/// Dimensions of an operand by name, with their local sizes.
struct Dimensions {
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;

  [[nodiscard]] bool has(const std::string& name) const {
    return std::ranges::find(names, name) != names.end();
  }
  /// Elements of the dimensions from `begin` to `end`.
  [[nodiscard]] std::int64_t elements(std::size_t begin, std::size_t end) const {
    std::int64_t product = 1;
    for (std::size_t d = begin; d < end; ++d) product *= sizes[d];
    return product;
  }
  [[nodiscard]] std::int64_t elements() const { return elements(0, names.size()); }
  /// How many elements lie from one index of a dimension to the next; 0 if it has none of the name.
  [[nodiscard]] std::int64_t stride(const std::string& name) const {
    const auto d = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    return d == names.size() ? 0 : elements(d + 1, names.size());
  }
  /// Some of these dimensions, in this order.
  [[nodiscard]] Dimensions of(const std::vector<std::string>& some) const {
    Dimensions result;
    for (const std::string& name : some) {
      result.names.push_back(name);
      result.sizes.push_back(sizes[std::ranges::find(names, name) - names.begin()]);
    }
    return result;
  }
};

/// Fused dimensions are called by their first identifier.
inline Dimensions dimensions(const std::vector<model::Term>& terms,
                             std::vector<std::int64_t> sizes) {
  Dimensions result{.names = {}, .sizes = std::move(sizes)};
  for (const model::Term& term : terms) result.names.push_back(term.identifiers.front());
  return result;
}

/// For every element of `elements`, in its order: the place in `operand` of the one with the same
/// indices along the dimensions that both have.
inline std::vector<std::size_t> places_in(const Dimensions& operand, const Dimensions& elements) {
  std::vector<std::size_t> places = {0};
  places.reserve(static_cast<std::size_t>(elements.elements()));
  for (std::size_t d = 0; d < elements.names.size(); ++d) {
    const auto stride = static_cast<std::size_t>(operand.stride(elements.names[d]));
    std::vector<std::size_t> finer;
    for (const std::size_t place : places) {
      for (std::int64_t i = 0; i < elements.sizes[d]; ++i)
        finer.push_back(place + static_cast<std::size_t>(i) * stride);
    }
    places = std::move(finer);
  }
  return places;
}

}  // namespace stratagem::execute
