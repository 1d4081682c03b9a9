// The shortest period in which the cells of a pipeline can repeat: a Tessel-style search.
#pragma once

#include <optional>
#include <vector>

#include "search/order/repeating.hpp"

namespace stratagem::search {

struct RepetendOptions {
  /// Of the solver for each question, in its own steps (Z3's rlimit; about a million take a
  /// second). So an answer does not depend on how fast a machine is.
  unsigned effort = 5'000'000;
};

/// The shortest period, and of the schedules with that the shortest latency: with N micro-batches
/// all has been done after (N - 1) * period + latency. All cells of a device are disjoint, modulo
/// the period. Nothing if the limits let no micro-batch through, or what is asked contradicts
/// itself. Asks Z3, period by period from the busiest device's work on. Where it gives up, the
/// result says what was proved; if it does so without any schedule, InputError is thrown. Source:
/// Lin et al., Tessel, HPCA 2024, section 4, whose repetend is one period; that all micro-batches
/// repeat one pattern is also what Qi et al., Pipeline Parallelism with Controllable Memory
/// (NeurIPS 2024) call a building block.
std::optional<Repetend> best_repetend(const Repeating& problem, const RepetendOptions& = {});

/// The blocks of each device in the order in which `micro_batches` micro-batches run them.
struct OrderedBlock {
  int block = 0;
  int micro_batch = 0;
  friend bool operator==(const OrderedBlock&, const OrderedBlock&) = default;
};
std::vector<std::vector<OrderedBlock>> unrolled(const Repeating& problem, const Repetend& repetend,
                                                int micro_batches);

}  // namespace stratagem::search
