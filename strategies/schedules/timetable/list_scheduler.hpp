// List scheduling of a pipeline's cells under limits on the activations that a rank holds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// A cell that may begin. Stages of a rank are told by slots: the chunk or, where bidirectional,
/// the copy. A stage takes its micro-batches in order; `turn` counts them from 0.
struct Candidate {
  placement::Cell cell;
  int rank = 0;
  int slot = 0;
  int turn = 0;
};

/// Of the cells that may begin on an idle rank the one with the smallest key does.
using Key = std::array<int, 3>;
using Priority = std::function<Key(const Candidate&)>;

/// The slots first..last of a rank together hold at most `most` activations. One is held from the
/// beginning of a forward cell to the end of the weight cell, or of a backward cell with both.
struct Limit {
  int first = 0;
  int last = 0;
  int most = 0;
};

struct Workload {
  Placement placement = Placement::wave;
  Pipeline pipeline;
  bool split = false;                      ///< backward cells into B and W
  std::vector<std::vector<Limit>> limits;  ///< of every rank
  /// Where not empty: the order of every rank's cells, which then wait for their turn. It holds all
  /// of them, or all but the weight cells, which fill the gaps.
  std::vector<std::vector<placement::Cell>> kept_order;
};

/// The limits of one rank under which no order of cells gets stuck while at most `most` activations
/// are held: chunk c leaves one for each chunk that comes after it. The oldest unfinished
/// micro-batch then always finds room: chunks that it has still to meet hold only older ones.
std::vector<Limit> safe_limits(int chunks, int most);

struct Listed {
  Timetable timetable;
  std::int64_t makespan = 0;
  std::int64_t bubble = 0;  ///< idle time inside its own span of the rank with most of it
};

/// Begins cells as early as dependencies, limits and idle ranks allow, without communication times;
/// ranks act in ascending order. Nothing where limits or the kept order let no cell begin any more.
/// Source: Graham, Bounds on Multiprocessing Timing Anomalies, SIAM J. Appl. Math. 17(2), 1969.
std::optional<Listed> list_schedule(const Workload& workload, const Priority& priority);

/// No list rule is the best one for all numbers and costs, so schedules try a few and keep the
/// shortest; of equally short ones, that with the smallest bubble, then the first.
class Shortest {
 public:
  /// Lists the cells by their costs, and once more as if all took equally long, an order that is
  /// then kept under the true costs. Greed for the next free moment does harm where durations
  /// differ; the even order is the pattern that papers draw.
  void attempt(const Workload& workload, const Priority& priority);

  /// Some attempt must have found one.
  [[nodiscard]] Timetable take();

 private:
  void offer(std::optional<Listed> found);

  std::optional<Listed> best_;
};

}  // namespace stratagem::strategies
