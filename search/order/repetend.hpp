// The shortest period in which the cells of a pipeline can repeat: a Tessel-style search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stratagem::search {

/// A cell of one micro-batch; its place in a list is its number.
struct Block {
  std::string name;          ///< "F2", for errors and tables
  int span = 1;              ///< units of time, at least 1
  std::vector<int> devices;  ///< that it keeps busy, all at once; at least one
  std::vector<int> after;    ///< blocks of the same micro-batch that end before it begins
};

/// Memory that a micro-batch holds on a device from the beginning of one block to the end of
/// another.
struct Held {
  int device = 0;
  int from = 0;
  int to = 0;
  std::int64_t amount = 1;  ///< at least 1
};

/// An order that is asked for: `before` of a micro-batch ends before `after` of the micro-batch
/// `lag` later begins (earlier, if negative).
struct Asked {
  int before = 0;
  int after = 0;
  int lag = 0;
};

struct Repeating {
  std::vector<Block> blocks;
  std::vector<Held> held;
  std::vector<std::int64_t> limits;  ///< of each device: the most that is held at once
  std::vector<Asked> asked;
};

struct RepetendOptions {
  /// Of the solver for each question, in its own steps (Z3's rlimit; about a million take a
  /// second). So an answer does not depend on how fast a machine is.
  unsigned effort = 5'000'000;
};

/// Micro-batch m begins block b at begins[b] + m * period.
struct Repetend {
  int period = 0;
  std::vector<int> begins;  ///< the least of them is 0
  int latency = 0;          ///< from the first begin of a micro-batch to its last end
  int least_period = 0;     ///< no shorter one is possible: `period` itself, if it was proved
  int least_latency = 0;    ///< likewise, of those with this period
  /// Most that is held at once, by device.
  std::vector<std::int64_t> peaks;
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
