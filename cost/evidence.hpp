// The measurements behind one kind of kernel or collective, and the errors for unseen shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

namespace stratagem::cost {

/// From the least to the most that was measured, both included.
struct Range {
  double least = 0;
  double most = 0;
  [[nodiscard]] constexpr bool holds(double value) const { return least <= value && value <= most; }
};

/// |predicted / measured - 1| of measured points whose family of shapes was left out of the fit.
struct Errors {
  std::size_t points = 0;
  double median = 0;
  double p90 = 0;
  double p95 = 0;
  double worst = 0;
};

/// Errors of the fit, and of the best constant rate for the same points: the median rate of the
/// other families' points of similar size. Collectives have no constant rate.
struct Compared {
  Errors fit;
  Errors constant;
};

/// The evidence behind the constants of one fit. A prediction is an extrapolation if its size,
/// smallest dimension or number of ranks lies outside of what was measured; reports mark it.
struct Evidence {
  std::string of;      ///< what was fitted: "gemm fp16", also where bf16 is taken to be like it
  std::string source;  ///< the GPUs that were measured, and by whom
  bool another_architecture = false;  ///< than the profile's
  int parameters = 0;                 ///< constants fitted together
  std::size_t families = 0;           ///< of shapes; each was left out once
  Range size;  ///< FLOP of products; bytes that other kernels move; bytes on each rank
  std::optional<Range> smallest;  ///< of products: the smallest of m, n and k
  std::optional<Range> ranks;     ///< of collectives
  Compared all;                   ///< no points where there was one family only
  Compared large, small;          ///< products of at least `large_product` FLOP, and the others
  std::map<int, Errors> decades;  ///< of the fit, by the power of ten below the size
};

/// Products from here on are judged by themselves: 100 GFLOP.
inline constexpr double large_product = 1e11;

/// The names of what can be fitted. Products are looked up by size and smallest dimension,
/// collectives by size and number of ranks.
enum class Fitted : std::uint8_t { products, kernels, collectives };

/// Throws InputError for a missing key, for one that names nothing that can be fitted, and for a
/// range whose end is below its begin.
Evidence read_evidence(const JsonReader&, Fitted what);
Json to_json(const Evidence&);

}  // namespace stratagem::cost
