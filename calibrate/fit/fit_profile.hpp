// From measurements and a datasheet to a profile whose constants carry their errors.
#pragma once

#include <string>
#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Fits to tables of the datasheet's architecture or, where there are none, to those of others (the
/// constants are then `assumed`):
///
///     gemm          cost::gemm_time, per data type
///     streaming     kernel: t = start + bytes / (share * bandwidth); no start on a processor
///                   eager:  t = max(floor, start + bytes / (share * bandwidth))
///                   where tables of both passes are there, one share for each; that of the kind is
///                   then the one at which as many bytes of both take as long
///     attention     t = kernel_floor + max(flops / (share * peak), bytes / (elementwise share *
///                   bandwidth)) of fp16 and bf16 on this architecture; else the datasheet's
///     kernel_floor  the median kernel gap
///     launch        the median floor of eager elementwise operators: the host's time from one
///                   event to the next with an operator between, hence an upper bound of the
///                   operator's own
///     collective    all-reduce of n GPUs of one node over L NVLinks:
///                   t = base + 2(n-1) node_step + 2(n-1)/n size / (L * link * nvlink_efficiency)
///     times         of collectives of ranks on processors, as measured: calibrate/fit/mpi.hpp;
///                   they stand in place of the formula, whose constants are then the datasheet's
///     nccl          what all-reduces add to NCCL's own prediction: calibrate/fit/nccl.hpp
///
/// An eager operator's `floor` is when the host gets round to the second event, `start` when the
/// kernel begins to move bytes; both belong to a table, the share to a kind.
/// What was measured as a share of another GPU's rates is used as that share of this one's.
/// Constants are rounded to four digits. Throws InputError where neither a table nor a likeness
/// gives a constant.
Fit fit_profile(const std::vector<Measurements>& measurements, const Datasheet& datasheet);

/// The same from the measurements that the datasheet names.
Fit fit_profile(const Datasheet& datasheet);

/// The same from `measurements`, and from the datasheet's files for tables that these lack: one GPU
/// alone has no all-reduces, and none of our measurements has the times of an eager framework. A
/// profile of a GPU that was measured here carries that GPU's own name, which `execute` looks for.
Fit fit_completed(std::vector<Measurements> measurements, const Datasheet& datasheet);

/// Writes what cost::read_profile reads. Throws InputError if the file cannot be written.
void write_profile(const cost::Profile& profile, const std::string& file);

}  // namespace stratagem::calibrate
