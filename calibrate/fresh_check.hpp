// How well a profile predicts shapes that it was not fitted to, measured just now.
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
  Seconds measured;   ///< median; under a launcher that of the slowest rank
  double spread = 0;  ///< half of its 95 % confidence interval, relative
};

struct FreshCheck {
  std::string profile;  ///< its name
  std::string gpu;      ///< the processor
  int ranks = 1;        ///< that measured at the same time
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

/// Did every group keep the limit?
bool met(const FreshCheck& check);

/// Every shape with both times, then errors by group.
std::string describe(const FreshCheck& check);
/// The same; times in seconds.
std::string json_of(const FreshCheck& check);

}  // namespace stratagem::calibrate
