// A profile that was fitted, and how well its constants say what was measured.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/fit/cross_validation.hpp"
#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// How well one group of constants, fitted together, says what was measured.
struct Quality {
  std::string what;  ///< "gemm fp16"
  std::size_t points = 0;
  double median_error = 0;           ///< of |predicted / measured - 1| with these constants
  double cross_validated_error = 0;  ///< the same, with each fifth predicted from the others
  Judgement judgement;               ///< point by point, with whole families left out
};

struct Fit {
  cost::Profile profile;
  std::vector<Quality> qualities;
};

/// What a group's constants rest on; nullptr of times that are kept as measured.
const cost::Evidence* evidence_of(const Fit& fit, const Quality& quality);

/// A line per group: points and errors, of the fit and of what it had not seen.
std::string describe(const Fit& fit);

}  // namespace stratagem::calibrate
