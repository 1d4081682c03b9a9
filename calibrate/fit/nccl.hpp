// Fits the correction of NCCL's prediction to measured all-reduces, and judges it on other numbers
// of GPUs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/cross_validation.hpp"
#include "calibrate/fit/least_squares.hpp"
#include "calibrate/measurements.hpp"
#include "cost/nccl/correction.hpp"
#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// One server of a preset. Throws InputError for another name, and for servers without GPUs.
topology::Cluster server_named(const std::string& name);

/// Predicts the all-reduces of one table with the channels and the choices of its server and its
/// version of NCCL.
class NcclPredictor {
 public:
  explicit NcclPredictor(const NcclTable& table);
  /// Without constants: NCCL's own prediction.
  Seconds predict(const NcclPoint& point, const std::optional<cost::NcclConstants>& constants);

 private:
  struct Estimates {
    cost::nccl::Communicator communicator;
    std::vector<cost::nccl::Estimate> estimates;
  };
  const Estimates& estimates_of(int ranks);

  topology::Cluster cluster_;
  const cost::nccl::Constants& constants_;
  cost::nccl::Communicators communicators_;
  std::map<int, Estimates> known_;
};

/// Sizes that count, once per octave, however many were measured.
bool power_of_two(Bytes size);

/// Fits the four constants of one type of GPU, as plain values (cost/nccl/correction.hpp), to the
/// points of `table.fitted_ranks` GPUs whose size is a power of two. In this file bandwidth_factor
/// is relative to the speed of NCCL's search. In a profile it is relative to the profile's
/// nvlink_efficiency (`over_efficiency` converts it).
struct NcclFit {
  cost::NcclConstants constants;
  Estimate estimate;
  /// A number of ranks is a family. Those that were not fitted at all follow behind the others,
  /// with what was fitted as a prediction of the unseen.
  Judgement judgement;
};
NcclFit fit_nccl(const NcclTable& table);

/// Converts a factor relative to the speed of NCCL's search on a preset's server into one relative
/// to a profile's nvlink_efficiency.
double over_efficiency(double factor, const std::string& preset, double nvlink_efficiency);

/// |predicted / measured - 1| of the powers of two.
struct NcclErrors {
  std::size_t points = 0;
  double median = 0;
  double worst = 0;
};
/// By number of ranks, then, under 0, over those that were not fitted.
std::map<int, NcclErrors> judge_nccl(const NcclTable& table,
                                     const std::optional<cost::NcclConstants>& constants);

/// The constants and, per number of ranks and size, the predicted over the measured time less 1 in
/// percent, with the errors of what was fitted and what was not.
std::string describe_nccl(const NcclTable& table);

}  // namespace stratagem::calibrate
