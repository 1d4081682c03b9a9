// Goes through the cells of a device class, and records which call wrote what, so that later calls
// can wait for it.
#include "lowering/sequences/sequence.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/redistribute/redistribute.hpp"
#include "lowering/residency/activations.hpp"
#include "lowering/residency/gathers.hpp"
#include "lowering/sequences/interleaving.hpp"
#include "lowering/sequences/message_block.hpp"
#include "lowering/sequences/messages.hpp"
#include "lowering/updates/optimizer.hpp"
#include "lowering/updates/weight_updates.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using program::Stream;

namespace {

using model::TensorId;

/// A tensor as one cell makes it.
struct CellTensor {
  TensorId tensor;
  int micro_batch;
  int slice;
  int repeat;
  friend auto operator<=>(const CellTensor&, const CellTensor&) = default;
};

CellTensor cell_tensor(TensorId tensor, const Cell& cell) {
  return {tensor, cell.micro_batch, cell.slice, cell.repeat};
}

class SequenceBuilder {
 public:
  explicit SequenceBuilder(const SequenceContext& context, int device_class)
      : c_(context),
        device_class_(device_class),
        cells_(context.order.rounds[device_class]),
        draft_(context, device_class),
        updates_(context, device_class, draft_),
        gathers_(context, draft_, all_runs()),
        activations_(context, draft_, all_runs()) {}

  program::Sequence build() {
    updates_.begin();
    activations_.serve_peers(place_of(0));
    for (int first = 0; first < static_cast<int>(cells_.size()); first = end_of(first))
      run_together(first, end_of(first));
    return draft_.finish(resident_buffers(c_, draft_, live_versions()));
  }

 private:
  [[nodiscard]] int live_versions() const {
    int live = 1;
    for (const int replica : c_.stages.device_classes()[device_class_].replicas)
      live = std::max(live, c_.versions[replica].live);
    return live;
  }

  [[nodiscard]] const Blocks& blocks(const Cell& cell) const { return *c_.slices[cell.slice]; }
  // ---- cells

  /// Behind a cell and those that run together with it.
  [[nodiscard]] int end_of(int first) const {
    int end = first + 1;
    while (cells_[end - 1].with_next) ++end;
    return end;
  }

  /// One cell, or a pair: all receive, all compute, all send.
  void run_together(int first, int end) {
    for (int i = first; i < end; ++i) {
      if (const auto fetched = activations_.copy_in(cells_[i])) fetched_ = *fetched;
      receive_for(cells_[i]);
    }
    compute(first, end);
    for (int i = first; i < end; ++i) {
      send_from(cells_[i]);
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
    const bool turns = take_turns(first, end);
    for (const auto& [index, k, run, last] : order_of_runs(first, end)) {
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

  [[nodiscard]] bool take_turns(int first, int end) const {
    return end - first == 2 && alternate(c_, cells_[first].cell, cells_[first + 1].cell);
  }

  /// What a cell runs k-th: nothing if it has no segments. After its last the cell has ended.
  struct NextRun {
    int cell = 0;
    int k = 0;
    std::optional<SegmentRun> run;
    bool last = false;
  };

  [[nodiscard]] std::vector<NextRun> order_of_runs(int first, int end) const {
    std::vector<NextRun> order;
    for (int i = first; i < end; ++i) {
      std::vector<SegmentRun> runs = runs_of(i);
      for (std::size_t k = 0; k < runs.size(); ++k)
        order.push_back({i, static_cast<int>(k), runs[k], k + 1 == runs.size()});
      if (runs.empty()) order.push_back({i, 0, std::nullopt, true});
    }
    if (take_turns(first, end)) std::ranges::stable_sort(order, {}, &NextRun::k);
    return order;
  }

  /// The segments of a cell in the order in which they run; those with nothing to do are left out:
  /// nothing is trained in them or before.
  [[nodiscard]] std::vector<SegmentRun> runs_of(int index) const {
    const ScheduledCell& of = cells_[index];
    std::vector<int> segments = c_.plan.stages[of.cell.stage];
    if (of.cell.pass != CellPass::forward) std::ranges::reverse(segments);
    std::vector<SegmentRun> runs;
    for (const int segment : segments) {
      const NumberedBlock* block =
          own_block(of.cell, block_for(of.cell, blocks(of.cell).of(segment)));
      if (of.cell.pass == CellPass::backward) add_second_runs(runs, of, segment);
      if (!block->lowered.block.tasks.empty()) runs.push_back({segment, &of, block});
    }
    return runs;
  }

  /// Before the backward run of the last of several segments that run again together.
  void add_second_runs(std::vector<SegmentRun>& runs, const ScheduledCell& of, int segment) const {
    const auto& together = blocks(of.cell).together(segment);
    if (!together || together->last != segment) return;
    for (int one = together->first; one <= together->last; ++one) {
      const NumberedBlock* block = own_block(of.cell, blocks(of.cell).of(one).again);
      if (!block->lowered.block.tasks.empty()) runs.push_back({one, &of, block, true});
    }
  }

  [[nodiscard]] std::vector<SegmentRun> all_runs() const {
    std::vector<SegmentRun> all;
    for (int first = 0; first < static_cast<int>(cells_.size()); first = end_of(first)) {
      for (const NextRun& next : order_of_runs(first, end_of(first))) {
        if (next.run) all.push_back(*next.run);
      }
    }
    return all;
  }

  /// What the devices of this class run of a block of a cell.
  [[nodiscard]] const NumberedBlock* own_block(const Cell& cell, const NumberedBlock* block) const {
    if (block->parts.empty()) return block;
    const int device = c_.stages.device_classes()[device_class_].devices.front();
    const Replica& replica = draft_.replica(cell.stage, cell);
    return &block->on(replica.copy, replica.grid.position(device));
  }

  [[nodiscard]] const NumberedBlock* block_for(const Cell& cell,
                                               const SegmentBlocks& lowered) const {
    switch (cell.pass) {
      case CellPass::forward:
        return cell.repeat + 1 == c_.plan.graph().forward_repeats ? lowered.forward
                                                                  : lowered.inference;
      case CellPass::weight:
        return lowered.weight;
      default:
        return c_.plan.splits_backward(cell.stage, cell.micro_batch) ? lowered.input
                                                                     : lowered.backward;
    }
  }

  /// Makes the first readers of a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor,
               const Cell& cell) {
    const auto written = written_.find(cell_tensor(tensor, cell));
    const auto readers = lowered.first_readers.find(facts.place.at(tensor));
    if (written == written_.end() || readers == lowered.first_readers.end()) return;
    const Stream from = draft_.stream_of(written->second);
    for (const auto& [stream, task] : readers->second) {
      if (stream != from) draft_.wait(call, task, written->second);
    }
  }

  /// Notes where a run leaves its part of a checkpoint, and makes a run that gathers parts wait.
  void connect_parts(int call, const SegmentRun& run) {
    if (c_.plan.divided(strategies::Keep::What::checkpoints).empty()) return;
    const LoweredBlock& lowered = run.block->lowered;
    const SegmentFacts& facts = c_.stages.facts(run.segment);
    if (run.of->cell.pass == CellPass::forward) {
      for (const auto& [place, task] : lowered.parts)
        parts_[cell_tensor(facts.tensors[place], run.of->cell)] = {call, task};
      return;
    }
    for (const auto& [place, readers] : lowered.first_readers) {
      const auto part = parts_.find(cell_tensor(facts.tensors[place], run.of->cell));
      if (part == parts_.end()) continue;
      for (const auto& [stream, task] : readers) {
        if (stream != Stream::compute) draft_.wait(call, task, part->second);
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
        written_[cell_tensor(tensor, of.cell)] = {call, writer->second};
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
      const auto written = written_.find(cell_tensor(one.tensor, before));
      if (written != written_.end() && draft_.stream_of(written->second) != Stream::compute)
        draft_.wait(call, 0, written->second);
    }
  }

  // ---- transfers

  [[nodiscard]] bool redistributes(const Message& message) const {
    return c_.stages.transfer(message.from, message.to) == StageTransfer::redistributes;
  }
  [[nodiscard]] bool stays(const Message& message) const {
    return c_.stages.transfer(message.from, message.to) == StageTransfer::stays;
  }
  void receive_for(const ScheduledCell& of) {
    const Stream stream =
        of.cell.pass == CellPass::forward ? Stream::receive_forward : Stream::receive_backward;
    for (const Message& message : incoming(c_.plan, c_.stages, of.cell)) {
      if (!stays(message)) receive_until(message, of, stream);
    }
  }

  /// Posts the receive that the cell needs, and before it those of messages that its sender sends
  /// earlier between the same replicas, whatever their tensors.
  void receive_until(const Message& message, const ScheduledCell& of, Stream stream) {
    Cell made_by = of.cell;
    if (message.recycled) --made_by.repeat;
    const auto wanted = std::tuple(message.from, message.to, cell_tensor(message.tensor, made_by));
    if (received_.erase(wanted) > 0) return;
    const std::array connection{draft_.replica_of(message.from, of.cell),
                                draft_.replica_of(message.to, of.cell),
                                static_cast<int>(of.cell.pass), message.recycled ? 1 : 0};
    auto& [next, order] = senders_[connection];
    if (order.empty()) order = receive_order(message, of);
    while (received_.erase(wanted) == 0) {
      expects(next < order.size(), "what a cell receives is sent");
      receive_all(message, order[next++], of, stream);
      if (next == order.size()) next = 0;  // in the next round, where there is no flush
    }
  }

  /// Posts the receives of everything that one cell of the sender sends to the replica that
  /// receives a message.
  void receive_all(const Message& like, const ScheduledCell& sent, const ScheduledCell& of,
                   Stream stream) {
    ScheduledCell reader = of;
    reader.cell.micro_batch = sent.cell.micro_batch;
    reader.cell.slice = sent.cell.slice;
    reader.cell.repeat = sent.cell.repeat + (like.recycled ? 1 : 0);
    ScheduledCell here = reader;
    here.cell.repeat = sent.cell.repeat;
    here.lag = sent.lag;
    for (const Message& message : incoming(c_.plan, c_.stages, reader.cell)) {
      if (message.from != like.from || message.recycled != like.recycled) continue;
      redistributes(message) ? redistribute(message, here, false) : transfer(message, here, stream);
      received_.emplace(message.from, message.to, cell_tensor(message.tensor, sent.cell));
    }
  }

  /// The cells that send between a message's replicas, each with the lag of the cell that reads it:
  /// a message is received in the round of its reader. What lags most comes first, as in all rounds
  /// together.
  [[nodiscard]] std::vector<ScheduledCell> receive_order(const Message& message,
                                                         const ScheduledCell& of) const {
    std::vector<ScheduledCell> order =
        send_order(c_.plan, c_.stages, c_.order,
                   {draft_.replica(message.from, of.cell), draft_.replica(message.to, of.cell)},
                   of.cell.pass, message.recycled);
    for (ScheduledCell& one : order) {
      Cell reader = one.cell;
      reader.stage = of.cell.stage;
      if (message.recycled) ++reader.repeat;
      one.lag =
          c_.order.lag == 0 ? 0 : std::ranges::find(cells_, reader, &ScheduledCell::cell)->lag;
    }
    std::ranges::stable_sort(order, std::greater<>(), &ScheduledCell::lag);
    return order;
  }

  /// What a cell computes leaves when all of it has ended: splitting it is the plan's business.
  void send_from(const ScheduledCell& of) {
    const Stream stream =
        of.cell.pass == CellPass::forward ? Stream::send_forward : Stream::send_backward;
    for (const Message& message : outgoing(c_.plan, c_.stages, of.cell)) {
      if (stays(message)) continue;
      const Written last = draft_.last_computation();
      const auto written = written_.find(cell_tensor(message.tensor, of.cell));
      const Written made = written == written_.end() ? last : written->second;
      const int call =
          redistributes(message) ? redistribute(message, of, true) : transfer(message, of, stream);
      if (call < 0) continue;
      for (const int task : draft_.first_of_queues(call)) {
        draft_.wait(call, task, last);
        if (draft_.stream_of(made) != Stream::compute) draft_.wait(call, task, made);
      }
    }
  }

  /// The tensor of a message, the replicas between which it goes, and the slice.
  [[nodiscard]] std::array<int, 4> redistribution_key(const Message& message,
                                                      const Cell& cell) const {
    return {message.tensor, draft_.replica_of(message.from, cell),
            draft_.replica_of(message.to, cell), cell.slice};
  }

  /// What all devices do to bring a tensor to a stage on another grid.
  const RedistributionBlocks& redistribution_of(const Message& message, const Cell& cell) {
    const auto [found, fresh] = c_.redistributions.try_emplace(redistribution_key(message, cell));
    if (!fresh) return found->second;
    const Blocks& here = blocks(cell);
    found->second =
        redistribution_blocks({.id = message.tensor,
                               .tensor = &here.graph().tensors[message.tensor],
                               .from = &draft_.replica(message.from, cell).grid,
                               .to = &draft_.replica(message.to, cell).grid,
                               .leaves = here.leaving(message.tensor, message.from, message.to),
                               .arrives = here.arriving(message.tensor, message.from, message.to),
                               .backward = cell.pass == CellPass::backward,
                               .purpose = purpose_of(message, cell)},
                              c_.plan.graph(), c_.groups);
    return found->second;
  }

  /// What flows from one replica to another has groups of its own.
  [[nodiscard]] int purpose_of(const Message& message, const Cell& cell) const {
    return draft_.replica_of(message.from, cell) * static_cast<int>(c_.stages.replicas().size()) +
           draft_.replica_of(message.to, cell);
  }

  /// This device class's part in bringing a tensor to a stage on another grid, after the cell that
  /// makes it or before the one that reads it; -1 if it has none.
  int redistribute(const Message& message, const ScheduledCell& of, bool leaving) {
    const RedistributionBlocks& both = redistribution_of(message, of.cell);
    const auto& side = leaving ? both.leaving : both.arriving;
    const int device = c_.stages.device_classes()[device_class_].devices.front();
    const auto found = side.find(device);
    if (found == side.end()) return -1;
    std::string name = leaving ? "leaves" : "arrives";
    for (const int part : redistribution_key(message, of.cell)) name += " " + std::to_string(part);
    name += " " + std::to_string(device);
    const NumberedBlock& block = c_.table.shared(name, [&] { return found->second; });
    const int call = draft_.add_call(block.id, -1, of);
    const std::tuple passage(message.from, message.to, cell_tensor(message.tensor, of.cell));
    if (leaving) left_[passage] = call;
    if (const auto join = both.joins.find(device); !leaving && join != both.joins.end()) {
      const int left = left_.at(passage);
      for (const int task : draft_.last_of_queues(left))
        draft_.wait(call, join->second, {left, task});
    }
    if (block.lowered.last_writer.contains(0))
      written_[cell_tensor(message.tensor, of.cell)] = {call, block.lowered.last_writer.at(0)};
    return call;
  }

  /// One half of a transfer between stages: the block of this class's side.
  int transfer(const Message& message, const ScheduledCell& of, Stream stream) {
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const placement::Grid& sender = draft_.replica(message.from, of.cell).grid;
    const placement::Grid& receiver = draft_.replica(message.to, of.cell).grid;
    const int group = c_.groups.across({sender, receiver}, purpose_of(message, of.cell));
    const std::string key = "transfer " + std::to_string(message.tensor) + (sends ? "s" : "r") +
                            std::to_string(group) + "/" + std::to_string(of.cell.slice);
    const int block = draft_.shared(key, [&] {
      return message_block({message, sends ? sender : receiver, group, stream}, blocks(of.cell),
                           c_.stack, c_.groups);
    });
    const std::optional<Written> before = draft_.computed();
    const int call = draft_.add_call(block, -1, of);
    if (sends) return call;
    const auto last = static_cast<int>(draft_.tasks_of(call).size()) - 1;
    written_[cell_tensor(message.tensor, of.cell)] = {call, last};
    if (last > 0 && before) draft_.wait(call, last, *before);  // a gather, like other collectives
    return call;
  }

  const SequenceContext& c_;
  int device_class_;
  const std::vector<ScheduledCell>& cells_;
  SequenceDraft draft_;
  WeightUpdates updates_;
  Gathers gathers_;
  Activations activations_;
  std::map<CellTensor, Written> written_;
  std::map<CellTensor, Written> parts_;  ///< of checkpoints, copied by their forward runs
  /// By stages: the call in which this device sends its part of a tensor to another grid.
  std::map<std::tuple<int, int, CellTensor>, int> left_;
  /// Ahead of the cell that reads it; by stages.
  std::set<std::tuple<int, int, CellTensor>> received_;
  /// By connection (replicas from and to, pass, recycled): the cells that send on it, and which of
  /// them comes next.
  std::map<std::array<int, 4>, std::pair<std::size_t, std::vector<ScheduledCell>>> senders_;
  Written fetched_;  ///< what the next backward block waits for
};

}  // namespace

program::Sequence build_sequence(const SequenceContext& context, int device_class) {
  return SequenceBuilder(context, device_class).build();
}

}  // namespace stratagem::lowering
