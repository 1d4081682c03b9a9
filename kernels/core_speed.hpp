// Measures how fast a core computes at the moment, by a fixed matrix product.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {

/// A product that is always the same, 256 x 256 x 256 in fp32, by which times of one core at
/// several moments can be held against each other: on machines that others use, too, cores slow
/// down and speed up again within seconds. Kernels that compute and kernels that move memory did so
/// by the same factor where that was tried (docs/records/calibration-machines.md); what slows
/// memory alone is not seen. Its operands, 768 KiB, stay in a core's own cache where that has a
/// megabyte.
class Yardstick {
 public:
  Yardstick();

  /// What the product takes: the median of three.
  Seconds pace();

 private:
  void multiply();

  std::vector<float> a_, b_, c_;
};

/// The pace of the slowest core, on all ranks, which look at theirs at the same time.
Seconds slowest_pace(Yardstick& mine, Communicator& ranks);

}  // namespace stratagem::kernels
