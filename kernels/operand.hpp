// What kernels read and write: dense arrays in memory, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/input_error.hpp"

namespace stratagem::kernels {

/// Kernels of this folder are templates over their elements and compiled for these two: fp32 is
/// what trains, fp64 is the reference.
#define STRATAGEM_FOR_ELEMENTS(instantiate) instantiate(float) instantiate(double)

template <typename T>
using In = std::span<const T>;
template <typename T>
using Out = std::span<T>;

/// An array seen as rows of the last dimension, all other dimensions together.
struct Rows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  [[nodiscard]] std::int64_t size() const { return rows * columns; }
};

/// Throws BrokenPromise unless every operand has so many elements.
template <typename... Operands>
void expect_size(std::int64_t elements, const Operands&... operands) {
  const auto size = static_cast<std::size_t>(elements);
  expects(((operands.size() == size) && ...), "operands of a kernel are as large as its shape");
}

}  // namespace stratagem::kernels
