// Estimates the memory that lowering and simulating a plan take, before either begins.
#pragma once

#include "base/quantity.hpp"
#include "lowering/stages/stages.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// How large the program of a plan will be.
struct Size {
  /// Of one iteration, over all sequences: a task for every operator of every cell.
  double tasks = 0;
  int sequences = 0;     ///< of devices that run the same
  int segments = 0;      ///< layers and ends of the model
  double operators = 0;  ///< of the graph, both passes
  /// Over all sequences: buffers that wait for a backward pass, times the segments after which they
  /// wait.
  double waiting = 0;

  /// The memory that lowering, checking and simulating need at once. Fitted to 15 GPTs of 1 to
  /// 2,000 layers, on 1 to 128 stages, with up to 5 million tasks: at most 25 % off above 100 MB. A
  /// run that holds many buffers for long takes more: BigScience's 200B with 2,048 micro-batches
  /// takes 3.6 GB where this says 2.2. A task takes 1 to 2 us.
  [[nodiscard]] Bytes memory() const;
};

Size size_of(const strategies::Plan& plan, const Stages& stages);

/// Throws InputError for a plan that is estimated to take more than 2.4 GB to simulate.
void refuse_size(const strategies::Plan& plan, const Stages& stages);

}  // namespace stratagem::lowering
