// Checks how well a profile predicts shapes that it was not fitted to, by measuring them now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "cost/evidence.hpp"

namespace stratagem::calibrate {

struct FreshShape {
  std::string group;  ///< its error is counted among: "gemm", "attention", "softmax", ...
  std::string name;   ///< "gemm NT 512 x 2048 x 512 x 1"
  Seconds predicted;
  Seconds measured;   ///< median, at the profile's pace if it has one; of the slowest rank
  double spread = 0;  ///< half of its 95 % confidence interval, relative
};

struct FreshCheck {
  std::string profile;  ///< its name
  std::string gpu;      ///< the processor
  int ranks = 1;        ///< that measured at the same time
  int busy_ranks = 1;   ///< of them on the server that has the most
  /// Those of the profile's measurements, one for each number; empty: not known.
  std::vector<int> profile_busy_ranks = {};
  std::uint64_t seed = 1;
  double limit = 0.15;  ///< of every group's median of |predicted / measured - 1|
  std::vector<FreshShape> shapes;
};

struct GroupErrors {
  std::string group;
  cost::Errors errors;
  double spread = 0;  ///< median of its shapes'
  bool met = false;   ///< is the median at most the limit?
};

/// One for each group, in the order of its first shape.
std::vector<GroupErrors> errors_by_group(const FreshCheck& check);

/// "" if as many ranks were busy as when the profile was measured, or else a line that says so:
/// ranks share memory and caches, so other numbers of them have other times.
std::string other_ranks(const FreshCheck& check);

/// Did every group keep the limit?
bool met(const FreshCheck& check);

/// Every shape with both times, then errors by group, and other_ranks.
std::string describe(const FreshCheck& check);
/// The same; times in seconds.
std::string json_of(const FreshCheck& check);

}  // namespace stratagem::calibrate
