// Walks the cells of a host and notes which call wrote what, so that later calls can wait for it.
#include "strategies/lower/sequence.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/lower/crossing.hpp"
#include "strategies/lower/gradients.hpp"
#include "strategies/lower/messages.hpp"
#include "strategies/lower/optimizer.hpp"
#include "strategies/lower/transfer_blocks.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// Where a tensor was last written in the sequence under construction.
struct Written {
  int call = -1;
  int task = -1;
};

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
      : c_(context), host_(host), cells_(context.order.hosts[host]) {
    buckets_ =
        gradient_buckets(c_.plan, c_.stages, *c_.slices.front(), c_.parameters, host, cells_);
    for (const int site : c_.stages.hosts()[host].sites) {
      const Site& s = c_.stages.sites()[site];
      const int cell = last_weight_cell(c_.plan, s.stage, s.copy, cells_);
      if (cell >= 0 && (update_ < 0 || std::pair(cells_[update_].lag, update_) <
                                           std::pair(cells_[cell].lag, cell)))
        update_ = cell;
    }
  }

  Sequence build() {
    find_guests();
    attend_guests();
    for (std::size_t first = 0; first < cells_.size();) {
      std::size_t end = first + 1;
      while (cells_[end - 1].with_next) ++end;
      run_together(static_cast<int>(first), static_cast<int>(end));
      first = end;
    }
    sequence_.residents =
        resident_buffers(c_.plan, c_.stack, c_.parameters, host_, live_versions());
    return std::move(sequence_);
  }

 private:
  [[nodiscard]] int live_versions() const {
    int live = 1;
    for (const int site : c_.stages.hosts()[host_].sites)
      live = std::max(live, c_.versions[site].live);
    return live;
  }

  [[nodiscard]] const Blocks& blocks(const Cell& cell) const { return *c_.slices[cell.slice]; }
  [[nodiscard]] int copy_of(const Cell& cell) const { return c_.plan.copy_of(cell.micro_batch); }
  [[nodiscard]] const Site& site(int stage, const Cell& cell) const {
    return c_.stages.sites()[c_.stages.site(stage, copy_of(cell))];
  }

  [[nodiscard]] Stream stream_of(const Written& written) const {
    return c_.table[sequence_.calls[written.call].block].tasks[written.task].stream;
  }

  int add_call(int block, int segment, const ScheduledCell& of) {
    const int behind =
        c_.versions[c_.stages.site(of.cell.stage, copy_of(of.cell))].behind[of.cell.micro_batch];
    sequence_.calls.push_back({.block = block,
                               .segment = segment,
                               .cell = of.cell,
                               .lag = of.lag,
                               .versions_behind = behind,
                               .waits = {}});
    return static_cast<int>(sequence_.calls.size()) - 1;
  }

  /// The number of a block that nobody needs to know more of.
  template <typename Make>
  int shared(const std::string& key, const Make& make) {
    return c_.table
        .shared(key,
                [&] {
                  LoweredBlock lowered;
                  lowered.block = make();
                  return lowered;
                })
        .id;
  }

  void wait(int call, int task, const Written& written) {
    sequence_.calls[call].waits.push_back({task, written.call, written.task});
  }

  // ---- cells

  /// One cell, or a pair: all receive, all compute, all send.
  void run_together(int first, int end) {
    for (int i = first; i < end; ++i) {
      fetch_for(cells_[i]);
      receive_for(cells_[i]);
    }
    for (int i = first; i < end; ++i) compute(i);
    for (int i = first; i < end; ++i) {
      send_from(cells_[i]);
      evict_from(cells_[i]);
    }
    if (first <= update_ && update_ < end) update(cells_[update_]);
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
      if (c_.plan.gradients.overlap) reduce_completed(index, *segment);
    }
  }

  /// Makes the first readers of a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor,
               const Cell& cell) {
    const auto written = written_.find(piece(tensor, cell));
    const auto readers = lowered.first_readers.find(facts.place.at(tensor));
    if (written == written_.end() || readers == lowered.first_readers.end()) return;
    const Stream from = stream_of(written->second);
    for (const auto& [stream, task] : readers->second) {
      if (stream != from) wait(call, task, written->second);
    }
  }

  void add_segment(int segment, const ScheduledCell& of, const NumberedBlock* block,
                   const std::vector<TensorId>& in, const std::vector<TensorId>& out) {
    if (!block->parts.empty()) {
      const int device = c_.stages.hosts()[host_].devices.front();
      block = &block->on(copy_of(of.cell), site(of.cell.stage, of.cell).grid.position(device));
    }
    if (block->lowered.block.tasks.empty()) return;  // nothing to train here or before
    const SegmentFacts& facts = c_.stages.facts(segment);
    const LoweredBlock& lowered = block->lowered;
    const int call = add_call(block->id, segment, of);
    if (of.cell.pass == CellPass::backward && fetched_.call >= 0) {
      const Written fetched = std::exchange(fetched_, {});
      for (const int task : first_of_streams(call)) wait(call, task, fetched);
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
      if (written != written_.end() && stream_of(written->second) != Stream::compute)
        wait(call, 0, written->second);
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
           hosts_site(c_.stages.site(message.from, copy_of(cell)));
  }
  [[nodiscard]] bool hosts_site(int site) const {
    const std::vector<int>& sites = c_.stages.hosts()[host_].sites;
    return std::ranges::find(sites, site) != sites.end();
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
    const std::array way{message.from, message.to, static_cast<int>(of.cell.pass),
                         message.recycled ? 1 : 0, copy_of(of.cell)};
    auto& [next, order] = senders_[way];
    if (order.empty()) order = receive_order(message, site(message.from, of.cell), of);
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

  /// The same with the lag of the cell that reads each: a message is received in the round of its
  /// reader. What lags most comes first, as in all rounds together.
  [[nodiscard]] std::vector<ScheduledCell> receive_order(const Message& message, const Site& sender,
                                                         const ScheduledCell& of) const {
    std::vector<ScheduledCell> order =
        send_order(c_.plan, c_.stages, c_.order, sender, of.cell.pass, message.recycled);
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
      const Written last = last_computation();
      const auto written = written_.find(piece(message.tensor, of.cell));
      const Written made = written == written_.end() ? last : written->second;
      const int call =
          redistributes(message) ? redistribute(message, of, true) : transfer(message, of, stream);
      if (call < 0) continue;
      for (const int task : first_of_streams(call)) {
        wait(call, task, last);
        if (stream_of(made) != Stream::compute) wait(call, task, made);
      }
    }
  }

  /// The first task of every queue of a call's block.
  [[nodiscard]] std::vector<int> first_of_streams(int call) const {
    std::set<std::pair<Stream, int>> seen;
    std::vector<int> result;
    const std::vector<Task>& tasks = c_.table[sequence_.calls[call].block].tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const auto* collective = std::get_if<Collective>(&tasks[t].work);
      const int group = transfers(tasks[t].stream) ? collective->group : -1;
      if (seen.emplace(tasks[t].stream, group).second) result.push_back(static_cast<int>(t));
    }
    return result;
  }

  /// This host's part in bringing a tensor to a stage on another grid, after the cell that makes it
  /// or before the one that reads it; -1 if it has none.
  int redistribute(const Message& message, const ScheduledCell& of, bool leaving) {
    const std::array key{message.tensor, copy_of(of.cell), of.cell.slice};
    if (!c_.crossings.contains(key)) {
      const bool backward = of.cell.pass == CellPass::backward;
      c_.crossings.emplace(key, cross({.id = message.tensor,
                                       .tensor = &blocks(of.cell).graph().tensors[message.tensor],
                                       .from = &site(message.from, of.cell).grid,
                                       .to = &site(message.to, of.cell).grid,
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
    const std::string name = "move " + std::to_string(message.tensor) + "," +
                             std::to_string(copy_of(of.cell)) + "," + std::to_string(device) +
                             (leaving ? "l" : "a") + std::to_string(of.cell.slice);
    const NumberedBlock& block = c_.table.shared(name, [&] { return found->second; });
    const int call = add_call(block.id, -1, of);
    if (block.lowered.last_writer.contains(0))
      written_[piece(message.tensor, of.cell)] = {call, block.lowered.last_writer.at(0)};
    return call;
  }

  /// One half of a transfer between stages: the block of this host's side.
  int transfer(const Message& message, const ScheduledCell& of, Stream stream) {
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const int group = c_.groups.across(
        {site(message.from, of.cell).grid, site(message.to, of.cell).grid},
        (message.from * c_.stages.count() + message.to) * c_.plan.copies() + copy_of(of.cell));
    const std::string key = "transfer " + std::to_string(message.tensor) + (sends ? "s" : "r") +
                            std::to_string(group) + "/" + std::to_string(of.cell.slice);
    const Grid& sender = site(message.from, of.cell).grid;
    const int block =
        shared(key, [&] { return message_block(message, blocks(of.cell), sender, group, stream); });
    const int call = add_call(block, -1, of);
    if (!sends) written_[piece(message.tensor, of.cell)] = {call, 0};
    return call;
  }

  // ---- evictions

  /// A copy of a guest's activations that this host takes in or gives back.
  struct Guest {
    Eviction eviction;
    bool returns = false;
    ScheduledCell of;  ///< the guest's cell
  };

  [[nodiscard]] std::optional<Eviction> eviction_of(const Cell& cell) const {
    const auto found = c_.plan.evictions().find({cell.stage, cell.micro_batch});
    if (found == c_.plan.evictions().end()) return std::nullopt;
    return Eviction{cell.stage, cell.micro_batch, found->second};
  }

  /// Lists the guests in the order in which their own host's cells send them away and fetch them.
  void find_guests() {
    for (std::size_t h = 0; h < c_.order.hosts.size(); ++h) {
      const std::vector<ScheduledCell>& theirs = c_.order.hosts[h];
      for (const ScheduledCell& of : theirs) {
        const Cell& cell = of.cell;
        const std::optional<Eviction> eviction = eviction_of(cell);
        if (!eviction || cell.pass == CellPass::weight || !stands_in(h, cell.stage)) continue;
        if (!hosts_site(c_.stages.site(eviction->guest_of, copy_of(cell)))) continue;
        guests_.push_back(
            {.eviction = *eviction, .returns = cell.pass == CellPass::backward, .of = of});
      }
    }
  }

  [[nodiscard]] bool stands_in(std::size_t host, int stage) const {
    const std::vector<int>& sites = c_.stages.hosts()[host].sites;
    return std::ranges::any_of(sites, [&](int s) { return c_.stages.sites()[s].stage == stage; });
  }

  /// All before the first cell: the other side says when each copy begins, and a host that waits for
  /// its own cells would hold it up.
  void attend_guests() {
    for (const Guest& guest : guests_) {
      const int call = move_activations(guest.eviction, guest.of, guest.returns, true);
      const std::pair key(guest.eviction.stage, guest.eviction.micro_batch);
      if (guest.returns) wait(call, 0, taken_in_.at(key));
      taken_in_[key] = {call, 0};
    }
  }

  void evict_from(const ScheduledCell& of) {
    const std::optional<Eviction> eviction = eviction_of(of.cell);
    if (!eviction || of.cell.pass != CellPass::forward) return;
    const Written last = last_computation();
    wait(move_activations(*eviction, of, false, false), 0, last);
  }

  /// Fetches what a backward cell needs once the cell before it has ended; not earlier, since room was
  /// made for it by then.
  void fetch_for(const ScheduledCell& of) {
    const std::optional<Eviction> eviction = eviction_of(of.cell);
    if (!eviction || of.cell.pass != CellPass::backward) return;
    const Written last = last_computation();
    const int call = move_activations(*eviction, of, true, false);
    wait(call, 0, last);
    fetched_ = {call, 0};
  }

  /// One side of one copy: away or back, of the guest or of its owner.
  int move_activations(const Eviction& eviction, const ScheduledCell& of, bool back, bool guest) {
    const Grid& owner = site(eviction.stage, of.cell).grid;
    const Grid& lender = site(eviction.guest_of, of.cell).grid;
    if (owner.axes != lender.axes || !owner.listed.empty())
      throw InputError("", "/strategy", "evictions between stages with equal grids of devices", "");
    const int group = back ? c_.groups.across({lender, owner}, -3 - eviction.stage)
                           : c_.groups.across({owner, lender}, -3 - eviction.stage);
    const std::string key = "evict " + std::to_string(eviction.stage) + (back ? "b" : "a") +
                            (guest ? "g" : "o") + std::to_string(group);
    const int block = shared(key, [&] {
      return eviction_block(c_.plan, c_.stages, *c_.slices.front(), eviction.stage, group, back,
                            back == guest);
    });
    return add_call(block, -1, of);
  }

  // ---- gradients and updates

  /// Calls for every bucket that a segment of a cell completes.
  void reduce_completed(int cell, int segment) {
    for (Bucket& bucket : buckets_.along_axes) {
      if (bucket.cell != cell || bucket.segment != segment) continue;
      reduce(bucket, group_of(bucket), cells_[cell]);
      bucket.gradients.clear();
    }
  }

  [[nodiscard]] int group_of(const Bucket& bucket) const {
    if (!bucket.ranks.empty()) return c_.groups.of({bucket.ranks}, -2);
    return bucket.grids.empty() ? c_.groups.along(grid_of(bucket), bucket.axes)
                                : c_.groups.across(bucket.grids, -1);
  }

  /// Along one axis of a stage's grid every stage of this host has the same group.
  [[nodiscard]] const Grid& grid_of(const Bucket& bucket) const {
    return c_.stages
        .sites()[c_.stages.site(cells_[bucket.cell].cell.stage, copy_of(cells_[bucket.cell].cell))]
        .grid;
  }

  /// Reduces what is left and steps, at the end of an iteration.
  void update(const ScheduledCell& last) {
    for (Bucket& bucket : buckets_.along_axes) {
      if (!bucket.gradients.empty()) reduce(bucket, group_of(bucket), last);
    }
    for (const Bucket& bucket : buckets_.across_grids) reduce(bucket, group_of(bucket), last);
    add_steps(last);
  }

  /// The last task on the compute stream so far.
  [[nodiscard]] Written last_computation() const {
    for (int call = static_cast<int>(sequence_.calls.size()) - 1; call >= 0; --call) {
      const std::vector<Task>& tasks = c_.table[sequence_.calls[call].block].tasks;
      for (std::size_t task = tasks.size(); task-- > 0;) {
        if (tasks[task].stream == Stream::compute) return {call, static_cast<int>(task)};
      }
    }
    throw BrokenPromise("a gradient was computed before it is reduced");
  }

  void reduce(const Bucket& bucket, int group, const ScheduledCell& of) {
    const Written after = last_computation();
    Block block{.name = "reduce gradients", .slots = {}, .tasks = {Task{}}};
    Task& task = block.tasks.front();
    task.name = block.name;
    task.work = Collective{
        .kind = cost::CollectiveKind::all_reduce, .group = group, .payload = bucket.bytes};
    task.stream = Stream::gradient_communication;
    for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
      const TensorId gradient = bucket.gradients[i];
      task.reads.push_back(static_cast<int>(i));
      block.slots.push_back(
          {c_.plan.graph().tensors[gradient].name, gradient, bucket.sizes[i], Category::gradients});
    }
    task.writes = task.reads;
    const int call = add_call(c_.table.add(std::move(block)), -1, of);
    wait(call, 0, after);
    last_reduction_ = call;
  }

  /// Optimizer steps, the first of which waits for the last reduction.
  void add_steps(const ScheduledCell& last) {
    bool first = true;
    for (StepBlock& step : step_blocks(c_.plan, c_.stack, c_.stages, c_.parameters, host_)) {
      const int id = c_.table
                         .shared(step.key,
                                 [&] {
                                   LoweredBlock lowered;
                                   lowered.block = std::move(step.block);
                                   return lowered;
                                 })
                         .id;
      const int call = add_call(id, step.segment, last);
      if (std::exchange(first, false) && last_reduction_ >= 0) wait(call, 0, {last_reduction_, 0});
    }
  }

  const SequenceContext& c_;
  int host_;
  const std::vector<ScheduledCell>& cells_;
  int update_ = -1;  ///< the cell after which the weights of the iteration are complete
  Sequence sequence_;
  std::map<Piece, Written> written_;
  std::set<Piece> received_;  ///< ahead of the cell that reads it
  /// By way (from, to, pass, recycled, copy): the cells that send on it, and which of them comes next.
  std::map<std::array<int, 5>, std::pair<std::size_t, std::vector<ScheduledCell>>> senders_;
  std::vector<Guest> guests_;
  std::map<std::pair<int, int>, Written> taken_in_;  ///< by stage and micro-batch: guests here
  Written fetched_;                                  ///< what the next backward block waits for
  GradientBuckets buckets_;
  int last_reduction_ = -1;
};

}  // namespace

Sequence build_sequence(const SequenceContext& context, int host) {
  return SequenceBuilder(context, host).build();
}

}  // namespace stratagem::strategies
