// The eight steps of a DualPipe rank.
#include "strategies/schedules/timetable/dualpipe_rank.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;

namespace {

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

}  // namespace

void add_dual_rank(const DualRank& rank, Timetable& timetable) {
  Writer writer(rank, timetable);
  fill_and_run(writer, rank);
  drain(writer, rank);
}

}  // namespace stratagem::strategies
