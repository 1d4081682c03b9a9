// What the kernels of a prediction are: products or others, beyond what was measured, unaligned.
#pragma once

#include <map>
#include <string>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::study {

/// Shares, 0..1, of one iteration of all devices. A kernel is extrapolated if its size, or the
/// smallest dimension of its product, is outside of its profile's cost::Evidence, or if its kind
/// has none (fused attention, steps on the host). A collective is not extrapolated if it is an
/// all-reduce of a measured size and number of ranks in one server; nothing else was fitted. For
/// ranks on processors this holds for every kind of collective that was measured.
struct Extrapolated {
  double kernel_time = 0;  ///< of the sum of all kernels' times, recomputation included
  std::map<std::string, double> by_kind;  ///< of the same sum: "gemm fp16", "attention"
  /// Of what collectives, sends and receives are asked to move, copies to the host left out.
  double bytes = 0;
  /// Of the sum of all kernels' times: what products lose since their rows are not aligned.
  double unaligned = 0;
  /// Of the sum of the times of all kernels on GPUs: products of matrices and attention. The others
  /// stream data through memory.
  double products = 0;
};

Extrapolated extrapolated(const cost::Profile& profile, const cost::Stack& stack,
                          const program::Program& program, int gpus_per_node);

}  // namespace stratagem::study
