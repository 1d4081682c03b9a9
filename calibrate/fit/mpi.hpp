// From measured collectives of ranks on processors to times that a profile keeps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/measurements.hpp"
#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// Times of one kind, and how well they say what they were not told, as medians of |predicted /
/// measured - 1|.
struct MpiFit {
  cost::CollectiveTimes times;
  std::size_t points = 0;
  double median_error = 0;  ///< of all points: strides of one size of group are averaged
  double sizes_error = 0;   ///< of every size, predicted without it
  double ranks_error = 0;   ///< of every number of ranks between others, predicted without it
};

/// For each kind of collective the points of all files whose groups stand within one server, which
/// ranks fill one after the other, as many on each (else none is known to): geometric means over
/// strides, by number of ranks and size (cost/measured_times.hpp has what lies between). Its error
/// is the worse one of sizes_error and ranks_error.
std::map<std::string, MpiFit> fit_mpi(const std::vector<Measurements>& measurements);

}  // namespace stratagem::calibrate
