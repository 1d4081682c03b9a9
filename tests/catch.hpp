// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04), and the comparisons that our tests share.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
#else
#include <catch2/catch.hpp>
using Catch::Matchers::StartsWith;
inline auto ContainsSubstring(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif

#include "base/quantity.hpp"

namespace stratagem {

/// Equal up to a relative error, measured against the larger of the two.
inline bool close(double a, double b, double relative_error) {
  return std::abs(a - b) <= relative_error * std::max(std::abs(a), std::abs(b));
}

template <int B, int F, int S>
bool close(Quantity<B, F, S> a, Quantity<B, F, S> b, double relative_error) {
  return close(a.value, b.value, relative_error);
}

}  // namespace stratagem
