// Walks the cells of a host and notes which call wrote what, so that later calls can wait for it.
#include "strategies/lower/sequence.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/lower/evictions.hpp"
#include "strategies/lower/messages.hpp"
#include "strategies/lower/optimizer.hpp"
#include "strategies/lower/transfer_blocks.hpp"
#include "strategies/lower/weight_updates.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// A tensor as one cell makes it.
struct Piece {
  TensorId tensor;
  int micro_batch;
  int slice;
  int repeat;
  friend auto operator<=>(const Piece&, const Piece&) = default;
};

Piece piece(TensorId tensor, const Cell& cell) {
  return {tensor, cell.micro_batch, cell.slice, cell.repeat};
}

class SequenceBuilder {
 public:
  explicit SequenceBuilder(const SequenceContext& context, int host)
      : c_(context),
        host_(host),
        cells_(context.order.hosts[host]),
        draft_(context, host),
        evictions_(context, draft_),
        updates_(context, host, draft_) {}

  Sequence build() {
    evictions_.attend_guests();
    for (std::size_t first = 0; first < cells_.size();) {
      std::size_t end = first + 1;
      while (cells_[end - 1].with_next) ++end;
      run_together(static_cast<int>(first), static_cast<int>(end));
      first = end;
    }
    return draft_.finish(
        resident_buffers(c_.plan, c_.stack, c_.parameters, host_, live_versions()));
  }

 private:
  [[nodiscard]] int live_versions() const {
    int live = 1;
    for (const int site : c_.stages.hosts()[host_].sites)
      live = std::max(live, c_.versions[site].live);
    return live;
  }

  [[nodiscard]] const Blocks& blocks(const Cell& cell) const { return *c_.slices[cell.slice]; }
  // ---- cells

  /// One cell, or a pair: all receive, all compute, all send.
  void run_together(int first, int end) {
    for (int i = first; i < end; ++i) {
      if (const auto fetched = evictions_.fetch_for(cells_[i])) fetched_ = *fetched;
      receive_for(cells_[i]);
    }
    for (int i = first; i < end; ++i) compute(i);
    for (int i = first; i < end; ++i) {
      send_from(cells_[i]);
      evictions_.evict_from(cells_[i]);
    }
    if (first <= updates_.last_cell() && updates_.last_cell() < end) updates_.finish();
  }

  void compute(int index) {
    const ScheduledCell& of = cells_[index];
    const std::vector<int>& segments = c_.plan.stages[of.cell.stage];
    if (of.cell.pass == CellPass::forward) {
      const bool trains = of.cell.repeat + 1 == c_.plan.graph().forward_repeats;
      for (const int segment : segments) {
        const SegmentBlocks& lowered = blocks(of.cell).of(segment);
        const SegmentFacts& facts = c_.stages.facts(segment);
        add_segment(segment, of, trains ? lowered.forward : lowered.inference, facts.activations_in,
                    facts.activations_out);
      }
      return;
    }
    const bool split = c_.plan.splits_backward(of.cell.stage, of.cell.micro_batch);
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      const SegmentBlocks& lowered = blocks(of.cell).of(*segment);
      const SegmentFacts& facts = c_.stages.facts(*segment);
      if (of.cell.pass == CellPass::weight) {
        add_segment(*segment, of, lowered.weight, {}, {});
      } else {
        add_segment(*segment, of, split ? lowered.input : lowered.backward, facts.gradients_in,
                    facts.gradients_out);
      }
      if (c_.plan.gradients.overlap) updates_.reduce_completed(index, *segment);
    }
  }

  /// Makes the first readers of a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor,
               const Cell& cell) {
    const auto written = written_.find(piece(tensor, cell));
    const auto readers = lowered.first_readers.find(facts.place.at(tensor));
    if (written == written_.end() || readers == lowered.first_readers.end()) return;
    const Stream from = draft_.stream_of(written->second);
    for (const auto& [stream, task] : readers->second) {
      if (stream != from) draft_.wait(call, task, written->second);
    }
  }

  void add_segment(int segment, const ScheduledCell& of, const NumberedBlock* block,
                   const std::vector<TensorId>& in, const std::vector<TensorId>& out) {
    if (!block->parts.empty()) {
      const int device = c_.stages.hosts()[host_].devices.front();
      const Site& site = draft_.site(of.cell.stage, of.cell);
      block = &block->on(site.copy, site.grid.position(device));
    }
    if (block->lowered.block.tasks.empty()) return;  // nothing to train here or before
    const SegmentFacts& facts = c_.stages.facts(segment);
    const LoweredBlock& lowered = block->lowered;
    const int call = draft_.add_call(block->id, segment, of);
    if (of.cell.pass == CellPass::backward && fetched_.call >= 0) {
      const Written fetched = std::exchange(fetched_, {});
      for (const int task : draft_.first_of_queues(call)) draft_.wait(call, task, fetched);
    }
    for (const TensorId tensor : in) connect(call, facts, lowered, tensor, of.cell);
    connect_recycled(call, segment, of.cell);
    for (const TensorId tensor : out) {
      const auto writer = lowered.last_writer.find(facts.place.at(tensor));
      if (writer != lowered.last_writer.end())
        written_[piece(tensor, of.cell)] = {call, writer->second};
    }
  }

  /// What is recycled takes the place of an input, of which blocks know nothing: they begin after it
  /// has come.
  void connect_recycled(int call, int segment, const Cell& cell) {
    if (cell.pass != CellPass::forward || cell.repeat == 0) return;
    for (const Recycled& one : c_.stages.recycled()) {
      if (one.reader != segment) continue;
      Cell before = cell;
      --before.repeat;
      const auto written = written_.find(piece(one.tensor, before));
      if (written != written_.end() && draft_.stream_of(written->second) != Stream::compute)
        draft_.wait(call, 0, written->second);
    }
  }

  // ---- transfers

  [[nodiscard]] bool redistributes(const Message& message) const {
    return c_.stages.crossing(message.from, message.to) == Crossing::redistributes;
  }
  /// Is there nothing to do for this host before the cell that reads (or after the one that makes)
  /// a tensor?
  [[nodiscard]] bool idle(const Message& message, bool reads, const Cell& cell) const {
    const Crossing crossing = c_.stages.crossing(message.from, message.to);
    if (crossing == Crossing::stays) return true;
    // A device of both sides has done its part when the tensor was made.
    return crossing == Crossing::redistributes && reads &&
           draft_.hosts_site(draft_.site_of(message.from, cell));
  }
  void receive_for(const ScheduledCell& of) {
    const Stream stream =
        of.cell.pass == CellPass::forward ? Stream::receive_forward : Stream::receive_backward;
    for (const Message& message : incoming(c_.plan, c_.stages, of.cell)) {
      if (!idle(message, true, of.cell)) receive_until(message, of, stream);
    }
  }

  /// Posts the receive that the cell needs, and before it those of messages that its sender sends
  /// earlier on the same way, whatever their tensors.
  void receive_until(const Message& message, const ScheduledCell& of, Stream stream) {
    Cell made_by = of.cell;
    if (message.recycled) --made_by.repeat;
    const Piece wanted = piece(message.tensor, made_by);
    if (received_.erase(wanted) > 0) return;
    const std::array way{draft_.site_of(message.from, of.cell), draft_.site_of(message.to, of.cell),
                         static_cast<int>(of.cell.pass), message.recycled ? 1 : 0};
    auto& [next, order] = senders_[way];
    if (order.empty()) order = receive_order(message, of);
    while (received_.erase(wanted) == 0) {
      expects(next < order.size(), "what a cell receives is sent");
      receive_all(message, order[next++], of, stream);
      if (next == order.size()) next = 0;  // in the next round, where there is no flush
    }
  }

  /// Posts the receives of everything that one cell of the sender sends on the way of a message.
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
      received_.insert(piece(message.tensor, sent.cell));
    }
  }

  /// The cells that send on a message's way, each with the lag of the cell that reads it: a message is
  /// received in the round of its reader. What lags most comes first, as in all rounds together.
  [[nodiscard]] std::vector<ScheduledCell> receive_order(const Message& message,
                                                         const ScheduledCell& of) const {
    std::vector<ScheduledCell> order =
        send_order(c_.plan, c_.stages, c_.order,
                   {draft_.site(message.from, of.cell), draft_.site(message.to, of.cell)},
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
      if (idle(message, false, of.cell)) continue;
      const Written last = draft_.last_computation();
      const auto written = written_.find(piece(message.tensor, of.cell));
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

  /// This host's part in bringing a tensor to a stage on another grid, after the cell that makes it
  /// or before the one that reads it; -1 if it has none.
  int redistribute(const Message& message, const ScheduledCell& of, bool leaving) {
    const int from = draft_.site_of(message.from, of.cell);
    const int to = draft_.site_of(message.to, of.cell);
    const std::array key{message.tensor, from, to, of.cell.slice};
    if (!c_.crossings.contains(key)) {
      const bool backward = of.cell.pass == CellPass::backward;
      c_.crossings.emplace(key, cross({.id = message.tensor,
                                       .tensor = &blocks(of.cell).graph().tensors[message.tensor],
                                       .from = &c_.stages.sites()[from].grid,
                                       .to = &c_.stages.sites()[to].grid,
                                       .leaves = blocks(of.cell).border(message.tensor),
                                       .arrives = blocks(of.cell).arrival(message.tensor),
                                       .backward = backward},
                                      c_.plan.graph(), c_.groups));
    }
    const CrossingBlocks& crossing = c_.crossings.at(key);
    const auto& side = leaving ? crossing.leaving : crossing.arriving;
    const int device = c_.stages.hosts()[host_].devices.front();
    const auto found = side.find(device);
    if (found == side.end()) return -1;
    const std::string name = "move " + std::to_string(message.tensor) + "," + std::to_string(from) +
                             "," + std::to_string(to) + "," + std::to_string(device) +
                             (leaving ? "l" : "a") + std::to_string(of.cell.slice);
    const NumberedBlock& block = c_.table.shared(name, [&] { return found->second; });
    const int call = draft_.add_call(block.id, -1, of);
    if (block.lowered.last_writer.contains(0))
      written_[piece(message.tensor, of.cell)] = {call, block.lowered.last_writer.at(0)};
    return call;
  }

  /// One half of a transfer between stages: the block of this host's side.
  int transfer(const Message& message, const ScheduledCell& of, Stream stream) {
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const int from = draft_.site_of(message.from, of.cell);
    const int to = draft_.site_of(message.to, of.cell);
    const std::vector<Site>& sites = c_.stages.sites();
    const int group = c_.groups.across({sites[from].grid, sites[to].grid},
                                       from * static_cast<int>(sites.size()) + to);
    const std::string key = "transfer " + std::to_string(message.tensor) + (sends ? "s" : "r") +
                            std::to_string(group) + "/" + std::to_string(of.cell.slice);
    const Grid& sender = sites[from].grid;
    const int block = draft_.shared(
        key, [&] { return message_block(message, blocks(of.cell), sender, group, stream); });
    const int call = draft_.add_call(block, -1, of);
    if (!sends) written_[piece(message.tensor, of.cell)] = {call, 0};
    return call;
  }

  const SequenceContext& c_;
  int host_;
  const std::vector<ScheduledCell>& cells_;
  SequenceDraft draft_;
  Evictions evictions_;
  WeightUpdates updates_;
  std::map<Piece, Written> written_;
  std::set<Piece> received_;  ///< ahead of the cell that reads it
  /// By way (sites from and to, pass, recycled): the cells that send on it, and which of them comes next.
  std::map<std::array<int, 4>, std::pair<std::size_t, std::vector<ScheduledCell>>> senders_;
  Written fetched_;  ///< what the next backward block waits for
};

}  // namespace

Sequence build_sequence(const SequenceContext& context, int host) {
  return SequenceBuilder(context, host).build();
}

}  // namespace stratagem::strategies
