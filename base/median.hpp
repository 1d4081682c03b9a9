// The median of some numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem {

/// Of an even number of values the mean of the two in the middle. Expects at least one.
inline double median(std::vector<double> values) {
  expects(!values.empty(), "a median is of at least one value");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace stratagem
