// Goes through the cells of a device class, and records which call wrote what, so that later calls
// can wait for it.
#include "lowering/sequences/sequence.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lowering/residency/activations.hpp"
#include "lowering/residency/gathers.hpp"
#include "lowering/sequences/cell_runs.hpp"
#include "lowering/sequences/interleaving.hpp"
#include "lowering/sequences/transfers.hpp"
#include "lowering/updates/optimizer.hpp"
#include "lowering/updates/weight_updates.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using program::Stream;

namespace {

using model::TensorId;

class SequenceBuilder {
 public:
  explicit SequenceBuilder(const SequenceContext& context, int device_class)
      : c_(context),
        device_class_(device_class),
        runs_(context, device_class),
        cells_(runs_.cells()),
        draft_(context, device_class),
        transfers_(context, draft_, written_),
        updates_(context, device_class, draft_),
        gathers_(context, draft_, runs_.all()),
        activations_(context, draft_, runs_.all()) {}

  program::Sequence build() {
    updates_.begin();
    activations_.serve_peers(place_of(0));
    for (int first = 0; first < static_cast<int>(cells_.size()); first = runs_.end_of(first))
      run_together(first, runs_.end_of(first));
    return draft_.finish(resident_buffers(c_, draft_, live_versions()));
  }

 private:
  [[nodiscard]] int live_versions() const {
    int live = 1;
    for (const int replica : c_.stages.device_classes()[device_class_].replicas)
      live = std::max(live, c_.versions[replica].live);
    return live;
  }

  /// One cell, or a pair: all receive, all compute, all send.
  void run_together(int first, int end) {
    for (int i = first; i < end; ++i) {
      if (const auto fetched = activations_.copy_in(cells_[i])) fetched_ = *fetched;
      transfers_.receive_for(cells_[i]);
    }
    compute(first, end);
    for (int i = first; i < end; ++i) {
      transfers_.send_from(cells_[i]);
      activations_.copy_out(cells_[i]);
    }
    activations_.serve_peers(place_of(end));
    if (first <= updates_.last_cell() && updates_.last_cell() < end) updates_.finish();
  }

  /// In the order of all cells; behind all of them after this class's last.
  [[nodiscard]] int place_of(int index) const {
    return index < static_cast<int>(cells_.size()) ? cells_[index].place
                                                   : std::numeric_limits<int>::max();
  }

  /// The segments of one cell, then those of the next; or in turns, where launches take turns too.
  void compute(int first, int end) {
    std::array<CallChain, 2> chains;
    const auto before = static_cast<int>(draft_.calls().size());
    const bool turns = runs_.take_turns(first, end);
    for (const auto& [index, k, run, last] : runs_.in_order(first, end)) {
      const auto begin = static_cast<int>(draft_.calls().size());
      if (run) add_run(index, *run);
      if (last) updates_.end_cell(index);
      const auto now = static_cast<int>(draft_.calls().size());
      for (int call = begin; turns && call < now; ++call) chains[index - first].push_back(call);
    }
    if (turns) draft_.launch_in(interleaved(draft_, chains), before);
  }

  void add_run(int index, const SegmentRun& run) {
    add_segment(run);
    const bool backward = run.of->cell.pass != CellPass::forward && !run.again;
    if (backward && c_.plan.gradients.overlap) updates_.reduce_completed(index, run.segment);
  }

  /// Makes the first readers of a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor,
               const Cell& cell) {
    const Written* written = written_.find({tensor, cell});
    const auto readers = lowered.first_readers.find(facts.place.at(tensor));
    if (written == nullptr || readers == lowered.first_readers.end()) return;
    const Stream from = draft_.stream_of(*written);
    for (const auto& [stream, task] : readers->second) {
      if (stream != from) draft_.wait(call, task, *written);
    }
  }

  /// Notes where a run leaves its part of a checkpoint, and makes a run that gathers parts wait.
  void connect_parts(int call, const SegmentRun& run) {
    if (c_.plan.divided(strategies::Keep::What::checkpoints).empty()) return;
    const LoweredBlock& lowered = run.block->lowered;
    const SegmentFacts& facts = c_.stages.facts(run.segment);
    if (run.of->cell.pass == CellPass::forward) {
      for (const auto& [place, task] : lowered.parts)
        parts_.note({facts.tensors[place], run.of->cell}, {call, task});
      return;
    }
    for (const auto& [place, readers] : lowered.first_readers) {
      const Written* part = parts_.find({facts.tensors[place], run.of->cell});
      if (part == nullptr) continue;
      for (const auto& [stream, task] : readers) {
        if (stream != Stream::compute) draft_.wait(call, task, *part);
      }
    }
  }

  void add_segment(const SegmentRun& run) {
    const ScheduledCell& of = *run.of;
    const SegmentFacts& facts = c_.stages.facts(run.segment);
    const LoweredBlock& lowered = run.block->lowered;
    const int call = call_with_needs(run);
    if (of.cell.pass == CellPass::backward && fetched_.call >= 0) {
      const Written fetched = std::exchange(fetched_, {});
      for (const int task : draft_.first_of_queues(call)) draft_.wait(call, task, fetched);
    }
    for (const auto& [place, task] : lowered.first_addition)
      draft_.note_addition(facts.tensors[place], {call, task});
    connect_parts(call, run);
    if (of.cell.pass == CellPass::weight) return;
    const bool forward = run.again || of.cell.pass == CellPass::forward;
    for (const TensorId tensor : forward ? facts.activations_in : facts.gradients_in)
      connect(call, facts, lowered, tensor, of.cell);
    connect_recycled(call, run.segment, of.cell);
    for (const TensorId tensor : forward ? facts.activations_out : facts.gradients_out) {
      const auto writer = lowered.last_writer.find(facts.place.at(tensor));
      const bool left = !run.again || lowered.out.contains(facts.place.at(tensor));
      if (left && writer != lowered.last_writer.end())
        written_.note({tensor, of.cell}, {call, writer->second});
    }
  }

  /// The call of a run, with what must be brought there before it, and what leaves after it.
  int call_with_needs(const SegmentRun& run) {
    const bool forward = run.of->cell.pass == CellPass::forward;
    const bool swapped = forward ? activations_.leaves(run) : activations_.comes_back(run);
    gathers_.before(run);
    if (swapped && !forward) activations_.before_run();
    const int call = draft_.add_call(run.block->id, run.segment, *run.of);
    gathers_.after(run, call);
    if (swapped && !forward) activations_.after_run(call);
    if (swapped && forward) activations_.copy_out(run, call);
    if (!run.block->lowered.whole_gradients.empty()) {
      if (const auto room = updates_.room_for_gradients()) {
        for (const int task : draft_.first_of_queues(call)) draft_.wait(call, task, *room);
      }
    }
    return call;
  }

  /// What is recycled takes the place of an input, of which blocks know nothing: they begin after
  /// it has come.
  void connect_recycled(int call, int segment, const Cell& cell) {
    if (cell.pass != CellPass::forward || cell.repeat == 0) return;
    for (const Recycled& one : c_.stages.recycled()) {
      if (one.reader != segment) continue;
      Cell before = cell;
      --before.repeat;
      const Written* written = written_.find({one.tensor, before});
      if (written != nullptr && draft_.stream_of(*written) != Stream::compute)
        draft_.wait(call, 0, *written);
    }
  }

  const SequenceContext& c_;
  int device_class_;
  CellRuns runs_;
  const std::vector<ScheduledCell>& cells_;
  SequenceDraft draft_;
  WrittenTensors written_;
  WrittenTensors parts_;  ///< of checkpoints, copied by their forward runs
  Transfers transfers_;
  WeightUpdates updates_;
  Gathers gathers_;
  Activations activations_;
  Written fetched_;  ///< what the next backward block waits for
};

}  // namespace

program::Sequence build_sequence(const SequenceContext& context, int device_class) {
  return SequenceBuilder(context, device_class).build();
}

}  // namespace stratagem::lowering
