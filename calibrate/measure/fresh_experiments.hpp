// Shapes that no fit has seen, to hold predictions against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/measure/experiment.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// One of them, and under what name its error is counted.
struct FreshExperiment {
  std::string group;  ///< "gemm", "attention", or its kind
  Experiment experiment;
};

/// Random shapes in fp32 within the ranges that the profile's fits rest on (cost::Evidence), sizes
/// drawn on a logarithmic scale, so that small ones are as many as large ones:
///
///     gemm         products of any m, n and k, every other one with all three multiples of 8, the
///                  two operands transposed or not in turn; every third one as narrow as the range
///                  allows, up to four times that, in one dimension
///     attention    the products of several heads: scores, context and its gradient
///     softmax, norm, rms_norm, elementwise, activation_function
///                  softmax, layer norm and RMS norm, each with its gradient, a sum, and GeLU with
///                  its gradient
///
/// `shapes` of every line of kernels, each random number by its place (kernels/philox.hpp): the
/// same seed and profile give the same shapes everywhere. Operands are as those of cpu_experiments.
/// Throws InputError for a profile without evidence of one of these kinds in fp32.
std::vector<FreshExperiment> fresh_experiments(const cost::Profile& profile, std::uint64_t seed,
                                               int shapes, Bytes cache,
                                               std::optional<Bytes> working_set = std::nullopt);

/// What the simulator would call it.
cost::Kernel kernel_of(const Experiment& experiment);

}  // namespace stratagem::calibrate
