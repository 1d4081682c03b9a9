// DualPipe: micro-batches enter at both ends, and forward cells run together with backward cells.
// DualPipeV: DualPipe folded at its middle, so that one copy of the weights is enough.
#include <algorithm>
#include <array>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;

namespace {

/// The two stages of a rank, which take turns. Stage 0 is the one that gets its first micro-batch
/// earlier.
struct DualStage {
  int stage = 0;
  int first_micro_batch = 0;
};

/// Where the rank stands: `place` steps from the end at which micro-batches enter, of `places`;
/// the last place is where they turn round or meet those of the other direction.
struct DualRank {
  int place = 0;
  int places = 1;
  int micro_batches = 2;  ///< of each stage, at least 2 x places
  std::array<DualStage, 2> stages;
};

/// Writes the rank's cells; each stage's micro-batches come in order, and so do the weight cells.
class Writer {
 public:
  Writer(const DualRank& rank, Timetable& timetable)
      : rank_(rank), timetable_(timetable), cells_(timetable.ranks.emplace_back()) {}

  void forward(int which) { cells_.push_back(next(which, CellPass::forward)); }

  void backward(int which) { cells_.push_back(next(which, CellPass::backward)); }

  void input_gradient(int which) {
    backward(which);
    waiting_.push_back(cells_.back());
    waiting_.back().pass = CellPass::weight;
  }

  void weight() { cells_.push_back(waiting_[weights_++]); }

  void together(int forward_of, int backward_of) {
    forward(forward_of);
    backward(backward_of);
    timetable_.together.emplace_back(cells_.end()[-2], cells_.back());
  }

 private:
  Cell next(int which, CellPass pass) {
    const DualStage& stage = rank_.stages[which];
    const int turn = turns_[which][static_cast<int>(pass)]++;
    return {stage.stage, stage.first_micro_batch + turn, pass};
  }

  const DualRank& rank_;
  Timetable& timetable_;
  std::vector<Cell>& cells_;
  std::array<std::array<int, 2>, 2> turns_{};
  std::vector<Cell> waiting_;  ///< weight cells, oldest first
  std::size_t weights_ = 0;
};

/// From the first forward cell to the last: both stages in pairs as soon as the turning point is
/// reached from both.
void fill_and_run(Writer& writer, const DualRank& rank) {
  const int before = rank.places - rank.place - 1;
  for (int i = 0; i < 2 * before; ++i) writer.forward(0);
  for (int i = 0; i < rank.place + 1; ++i) {
    writer.forward(0);
    writer.forward(1);
  }
  for (int i = 0; i < before; ++i) {
    writer.input_gradient(1);
    writer.weight();
    writer.forward(1);
  }
  const int pairs = rank.micro_batches - 2 * rank.places + rank.place + 1;
  for (int i = 0; i < pairs; ++i) {
    if (i == 0 && before == 0) {
      // Apart, each result leaves as soon as it is there: a smaller bubble for the ranks before.
      writer.forward(0);
      writer.backward(1);
    } else {
      writer.together(0, 1);
    }
    writer.together(1, 0);
  }
  for (int i = 0; i < before; ++i) {
    writer.backward(1);
    writer.together(1, 0);
  }
}

/// Backward cells only; the later half leaves its weight cells for the end, to fill bubbles there.
void drain(Writer& writer, const DualRank& rank) {
  const int before = rank.places - rank.place - 1;
  for (int i = 0; i < 2 * (rank.place + 1); ++i) {
    const int which = i % 2 == 0 ? 1 : 0;
    if (i < rank.place + 1) {
      writer.backward(which);
    } else {
      writer.input_gradient(which);
    }
  }
  for (int i = 0; i < before; ++i) {
    writer.weight();
    writer.input_gradient(0);
  }
  for (int i = 0; i < rank.place + 1; ++i) writer.weight();
}

/// Appends the rank's cells, and its pairs of a forward and a backward cell that run together.
/// Source: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1; the steps as in the
/// DualPipe repository's README and figures.
void add_dual_rank(const DualRank& rank, Timetable& timetable) {
  Writer writer(rank, timetable);
  fill_and_run(writer, rank);
  drain(writer, rank);
}

/// Bubble (p/2-1)(F&B + B - 3W) on the end ranks if a pair takes as long as its halves, less if it
/// is shorter; at most p+1 micro-batches in flight; two copies of the weights.
/// Source: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1.
Timetable dualpipe_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int m = pipeline.micro_batches;
  require(p % 2 == 0, "an even number of pipeline ranks for dualpipe", p);
  require(m % 2 == 0 && m >= 2 * p,
          "an even number of micro-batches for dualpipe, at least " + std::to_string(2 * p), m);
  Timetable timetable;
  for (int rank = 0; rank < p; ++rank) {
    DualRank dual{std::min(rank, p - 1 - rank), p / 2, m / 2, {}};
    dual.stages = {{{rank, 0}, {p - 1 - rank, m / 2}}};
    // The lower half meets the micro-batches of copy 1 first.
    if (rank >= p / 2) std::swap(dual.stages[0], dual.stages[1]);
    add_dual_rank(dual, timetable);
  }
  return timetable;
}

/// As DualPipe on 2p ranks with 2m micro-batches: bubble (p-1)(F&B + B - 3W) on the first rank if a
/// pair takes as long as its halves; at most 2p+1 stages' activations.
/// Source: Qi, "Cut-in-half" schedule (Sea AI Lab, 2025), as in the DualPipe repository's README.
Timetable dualpipe_v_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  require(pipeline.micro_batches >= 2 * p,
          "at least " + std::to_string(2 * p) + " micro-batches for dualpipe_v",
          pipeline.micro_batches);
  Timetable timetable;
  for (int rank = 0; rank < p; ++rank) {
    const std::array<DualStage, 2> stages{{{rank, 0}, {2 * p - 1 - rank, 0}}};
    add_dual_rank({rank, p, pipeline.micro_batches, stages}, timetable);
  }
  return timetable;
}

}  // namespace

Schedule dualpipe() {
  return {.name = "dualpipe",
          .summary = "as chimera, with B and W split and forward beside backward cells",
          .placement = Placement::bidirectional,
          .orders = &dualpipe_timetable};
}

Schedule dualpipe_v() {
  return {.name = "dualpipe-v",
          .summary = "dualpipe folded into a V: two chunks a rank, one copy",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &dualpipe_v_timetable};
}

}  // namespace stratagem::strategies
