// What is measured of a machine: a kernel, a shape, and a way to run it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::calibrate {

/// One row of one table of a measurements file: docs/guide/measurements.md has the kinds and
/// columns.
struct Experiment {
  std::string kind;                  ///< one of cost::kernel_kind_names
  std::string operation;             ///< "gelu"; "" of matrix products
  std::vector<std::string> columns;  ///< of what follows, "m", "n", "k"
  std::vector<std::int64_t> sizes;   ///< by column
  std::string transposes;            ///< of matrix products, as BLAS writes them, else ""
  Flops flops;                       ///< of matrix products
  Bytes bytes;                       ///< each operand once
  /// Makes operands and returns what is to be timed.
  std::function<std::function<void()>()> prepare;
  std::string scenario = {};  ///< whose shape it is; "" of a sweep

  /// "gemm NT 512 x 2048 x 512".
  [[nodiscard]] std::string name() const;
  /// Without its shape: "elementwise add".
  [[nodiscard]] std::string label() const;
};

/// Throws InputError, which names what there is, unless the name of one of `all` begins with
/// `only`.
void check_only(const std::string& only, const std::vector<Experiment>& all);

}  // namespace stratagem::calibrate
