// How much longer n GPUs of one kind take than one: they are not equally fast, and all wait for the
// slowest.
#pragma once

#include "cost/kernel.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost {

/// The expected largest of `count` independent standard normal numbers:
///
///     E = integral from 0 to infinity of 1 - F(x)^count - F(-x)^count dx
///
/// F is the normal distribution. 0 of one, 1/sqrt(pi) of two, 1.42 of 8, 3.24 of 1,000. Expects at
/// least one.
/// Source: David and Nagaraja, Order Statistics, 3rd edition, section 3.1.
double expected_largest(int count);

/// Products and fused attention take as long as the clock says that a GPU holds at its power limit.
/// Other kernels wait for memory, whose clock is the same in all GPUs.
constexpr bool runs_at_its_clock(KernelKind kind) {
  return kind == KernelKind::gemm || is_attention(kind);
}

/// How much longer such kernels take on the slowest of so many GPUs than on the median one, as a
/// factor: 1 + speed_spread * expected_largest(gpus).
/// Whoever trains with the slowest GPU waits for it: in its group of tensor ranks at every
/// collective, of data ranks once an iteration. In a pipeline a slow GPU sets the pace where it
/// stands in the stage that takes longest; elsewhere there is time left. So of stages that differ,
/// and of pipelines with few micro-batches, this is an upper estimate.
/// A chip is slower in all iterations: the spread is over chips, not over time.
double slowest_of(int gpus, const Profile&);

}  // namespace stratagem::cost
