// Fits a software stack's scalar to a published single-GPU run.
#pragma once

#include "cost/profile.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// The `slowdown` with which the predicted TFLOP/s of a run (recomputation counted) equal its
/// measured `tflops_per_gpu`, to four digits, as the constant to write into the stack's file.
/// Throws InputError if the run has more than one GPU (nothing parallel is fitted, it is
/// predicted), if it has no such measurement, or if no slowdown between 0.5 and 4 gives it.
cost::Constant<double> fit_slowdown(const Run& run);

}  // namespace stratagem::study
