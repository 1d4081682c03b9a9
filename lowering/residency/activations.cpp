// Adds one call for every copy; between devices, one for each side.
#include "lowering/residency/activations.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using placement::Grid;
using program::Block;
using program::Category;
using program::Residence;
using program::Stream;
using program::Task;
using strategies::Keep;

namespace {

/// What a rule moves of what a segment's forward run leaves.
std::map<int, Border> moved(const SequenceContext& context, int segment, const Keep& rule) {
  std::map<int, Border> left = context.slices.front()->left_by_forward(segment);
  if (rule.what == Keep::What::checkpoints)
    std::erase_if(left,
                  [](const auto& one) { return one.second.category != Category::checkpoints; });
  return left;
}

bool leaves_device(const SequenceContext& context, int segment) {
  const Keep* rule = context.residency.of_segment(segment);
  return rule != nullptr && !moved(context, segment, *rule).empty();
}

bool trains(const SequenceContext& context, const Cell& cell) {
  return cell.repeat + 1 == context.plan.graph().forward_repeats;
}

Bytes bytes_of(const Block& block) {
  Bytes total;
  for (const program::Slot& slot : block.slots) total += slot.bytes;
  return total;
}

bool runs(const NumberedBlock* block) {
  return block != nullptr && !block->lowered.block.tasks.empty();
}

std::vector<program::Operand> operands_of(const Block& block, const std::vector<int>& slots) {
  std::vector<program::Operand> operands;
  for (const int slot : slots) {
    const program::Slot& named = block.slots[slot];
    operands.push_back({.tensor = named.tensor, .slot = slot, .layout = named.layout});
  }
  return operands;
}

/// The segments that a cell runs, in order, those first that run again for one.
std::vector<int> segments_run(const SequenceContext& context, const Cell& cell) {
  std::vector<int> result;
  const Blocks& blocks = *context.slices.front();
  std::vector<int> segments = context.plan.stages[cell.stage];
  if (cell.pass != CellPass::forward) std::ranges::reverse(segments);
  for (const int segment : segments) {
    const SegmentBlocks& of = blocks.of(segment);
    const auto& together = blocks.together(segment);
    const bool again = cell.pass == CellPass::backward && together && together->last == segment;
    for (int one = again ? together->first : segment; again && one <= segment; ++one) {
      if (runs(blocks.of(one).again)) result.push_back(one);
    }
    const bool split = context.plan.splits_backward(cell.stage, cell.micro_batch);
    const NumberedBlock* block = cell.pass == CellPass::forward  ? of.forward
                                 : cell.pass == CellPass::weight ? of.weight
                                 : split                         ? of.input
                                                                 : of.backward;
    if (runs(block)) result.push_back(segment);
  }
  return result;
}

}  // namespace

Activations::Activations(const SequenceContext& context, SequenceDraft& draft,
                         const std::vector<SegmentRun>& runs)
    : AheadOfRuns(context, draft, backward(context, runs), context.residency.ahead_of_segments()),
      guests_(guest_cells()) {}

std::vector<SegmentRun> Activations::backward(const SequenceContext& context,
                                              const std::vector<SegmentRun>& runs) {
  std::vector<SegmentRun> result;
  std::set<Key> seen;
  for (const SegmentRun& run : runs) {
    if (run.of->cell.pass == CellPass::forward || !leaves_device(context, run.segment)) continue;
    if (seen.emplace(run.segment, run.of->cell.micro_batch).second) result.push_back(run);
  }
  return result;
}

bool Activations::leaves(const SegmentRun& run) const {
  return trains(context(), run.of->cell) && leaves_device(context(), run.segment);
}

bool Activations::comes_back(const SegmentRun& run) const {
  const std::optional<SegmentRun> next = next_run();
  return next && next->segment == run.segment && next->of->cell == run.of->cell;
}

void Activations::copy_out(const SegmentRun& run, int call) {
  const int copy = add_copy(portion_of(run.segment), true, false, *run.of);
  for (const int task : draft().last_of_queues(call)) draft().wait(copy, 0, {call, task});
  const std::size_t ahead = static_cast<std::size_t>(context().residency.ahead_of_segments()) + 1;
  if (out_.size() >= ahead) {
    for (const int task : draft().first_of_queues(call))
      draft().wait(call, task, out_[out_.size() - ahead]);
  }
  out_.push_back({copy, 0});  // from there on the device has room
  left_[{run.segment, run.of->cell.micro_batch}] = last_of(copy);
}

Written Activations::last_of(int call) const {
  return {call, static_cast<int>(draft().tasks_of(call).size()) - 1};
}

bool Activations::may_issue(std::size_t index) const {
  return left_.contains({run(index).segment, run(index).of->cell.micro_batch});
}

Written Activations::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  const int copy = add_copy(portion_of(of.segment), false, false, *of.of);
  draft().wait(copy, 0, left_.at({of.segment, of.of->cell.micro_batch}));
  wait_for_room(index, copy);
  return last_of(copy);
}

void Activations::connect(std::size_t index, int call) {
  for (const int task : draft().first_of_queues(call)) draft().wait(call, task, brought(index));
}

void Activations::copy_out(const ScheduledCell& of) {
  const auto portion = portion_of(of.cell);
  if (!portion || of.cell.pass != CellPass::forward) return;
  const Written last = draft().last_computation();
  draft().wait(add_copy(*portion, true, false, of), 0, last);
}

std::optional<Written> Activations::copy_in(const ScheduledCell& of) {
  const auto portion = portion_of(of.cell);
  if (!portion || of.cell.pass != CellPass::backward) return std::nullopt;
  const Written last = draft().last_computation();
  const int call = add_copy(*portion, false, false, of);
  draft().wait(call, 0, last);
  return Written{call, 0};
}

/// All segments of a cell, if it has a rule.
std::optional<Activations::Portion> Activations::portion_of(const Cell& cell) const {
  const Keep* rule = context().residency.of_cell(cell.stage, cell.micro_batch);
  if (rule == nullptr || cell.pass == CellPass::weight) return std::nullopt;
  return Portion{context().plan.stages[cell.stage], rule};
}

Activations::Portion Activations::portion_of(int segment) const {
  return {{segment}, context().residency.of_segment(segment)};
}

std::vector<Activations::Portion> Activations::portions_of(const Cell& cell) const {
  if (const auto whole = portion_of(cell)) return {*whole};
  std::vector<Portion> portions;
  for (const int segment : segments_run(context(), cell)) {
    if (leaves_device(context(), segment)) portions.push_back(portion_of(segment));
  }
  return portions;
}

std::vector<Activations::GuestCell> Activations::guest_cells() const {
  const auto lends = [](const Keep& rule) { return rule.where == Keep::Where::stage; };
  std::vector<GuestCell> guests;
  if (std::ranges::none_of(context().residency.rules(), lends)) return guests;
  std::set<int> seen;  // places: all device classes of a replica run the same cells
  for (const std::vector<ScheduledCell>& cells : context().order.rounds) {
    std::set<int> here;
    for (const ScheduledCell& of : cells) {
      here.insert(of.place);
      if (seen.contains(of.place)) continue;
      if (of.cell.pass == CellPass::forward && !trains(context(), of.cell)) continue;
      for (Portion& portion : portions_of(of.cell)) {
        if (lends(*portion.rule) &&
            draft().runs_replica(draft().replica_of(portion.rule->stage, of.cell)))
          guests.push_back({&of, std::move(portion)});
      }
    }
    seen.merge(here);
  }
  std::ranges::stable_sort(guests, {}, [](const GuestCell& one) { return one.of->place; });
  return guests;
}

void Activations::serve_peers(int place) {
  for (; served_ < guests_.size() && guests_[served_].of->place < place; ++served_) {
    const auto& [of, portion] = guests_[served_];
    const Key key(portion.segments.front(), of->cell.micro_batch);
    if (of->cell.pass == CellPass::forward) {
      taken_in_[key] = {add_copy(portion, true, true, *of), 0};
    } else if (const auto found = taken_in_.find(key); found != taken_in_.end()) {
      draft().wait(add_copy(portion, false, true, *of), 0, found->second);
      taken_in_.erase(found);
    }
  }
}

int Activations::add_copy(const Portion& portion, bool out, bool guest, const ScheduledCell& of) {
  const bool peer = portion.rule->where == Keep::Where::stage;
  const int block = peer ? peer_block(portion, out, guest, of.cell) : host_block(portion, out);
  const bool of_one = !guest && portion.segments.size() == 1;
  return draft().add_call(block, of_one ? portion.segments.front() : -1, of,
                          guest ? portion.rule->stage : -1);
}

/// Adds to a block, as slots in one memory, what a rule moves; returns them. A call of one segment
/// names tensors as the segment does.
std::vector<int> Activations::add_slots(Block& block, const Portion& portion, bool guest,
                                        program::Residence place) const {
  const bool of_one = !guest && portion.segments.size() == 1;
  std::vector<int> slots;
  for (const int segment : portion.segments) {
    const SegmentFacts& facts = context().stages.facts(segment);
    for (const auto& [table, border] : moved(context(), segment, *portion.rule)) {
      const model::Tensor& tensor = context().plan.graph().tensors[facts.tensors[table]];
      slots.push_back(static_cast<int>(block.slots.size()));
      block.slots.push_back(
          {.name = tensor.name,
           .tensor = of_one ? table : facts.tensors[table],
           .bytes = local_bytes(tensor, border.layout, context().stages.grid_of_segment(segment)),
           .category = border.category,
           .place = place,
           .layout = border.layout});
    }
  }
  return slots;
}

/// The forward blocks of its segments, as part of a key: equal ones keep the same.
std::string Activations::key_of(const Portion& portion) const {
  std::string key;
  for (const int segment : portion.segments)
    key += " " + std::to_string(context().slices.front()->of(segment).forward->id);
  return key;
}

std::string Activations::name_of(const Portion& portion) const {
  return portion.segments.size() == 1
             ? context().plan.graph().segments[portion.segments.front()].name
             : "activations";
}

/// One side of a copy between two stages: of the stage's own devices or of those that take it in.
int Activations::peer_block(const Portion& portion, bool out, bool guest, const Cell& cell) const {
  const int stage = context().stages.of(portion.segments.front());
  const Grid& owner = draft().replica(stage, cell).grid;
  const Grid& lender = draft().replica(portion.rule->stage, cell).grid;
  if (owner.axes != lender.axes || !owner.listed.empty() || owner == lender) {
    throw InputError("", portion.rule->said,
                     "stages on equal grids of other devices where one takes in what another swaps",
                     "");
  }
  const std::vector<Grid> direction = out ? std::vector{owner, lender} : std::vector{lender, owner};
  // Where two stages take in each other's activations, each direction has a queue of its own.
  const int purpose = -3 - 2 * draft().replica_of(stage, cell) - (out ? 1 : 0);
  const int group = context().groups.across(direction, purpose);
  const std::string side =
      guest ? "guest " + std::to_string(portion.segments.front()) : std::string("own");
  const std::string key =
      side + (out ? " out" : " in") + key_of(portion) + "/" + std::to_string(group);
  return draft().shared(key, [&] {
    const bool sends = out != guest;
    Block block{.name = (out ? "lend " : "take back ") + name_of(portion)};
    const std::vector<int> slots = add_slots(block, portion, guest, Residence::device);
    Task& task = block.tasks.emplace_back();
    task.name = block.name;
    task.stream = sends ? Stream::send_forward : Stream::receive_forward;
    (sends ? task.reads : task.writes) = (sends ? task.frees : task.allocates) = slots;
    task.work = program::Collective{
        .kind = cost::CollectiveKind::send, .group = group, .payload = bytes_of(block)};
    program::Operation& moves = task.operations.emplace_back();
    moves.action = program::Action::transfer;
    (sends ? moves.inputs : moves.outputs) = operands_of(block, slots);
    return block;
  });
}

namespace {

/// A copy between the device, its host and the host's drives.
struct Hop {
  Residence from;
  Residence to;
  cost::CollectiveKind kind;
  Stream stream;
};

/// The way from the device to a place, or back.
std::vector<Hop> way(Keep::Where where, bool out) {
  using Kind = cost::CollectiveKind;
  constexpr auto device = Residence::device, host = Residence::host, drives = Residence::drives;
  const bool far = where == Keep::Where::drives;
  std::vector<Hop> hops;
  if (out) {
    hops.push_back({device, host, Kind::to_host, Stream::copy_out});
    if (far) hops.push_back({host, drives, Kind::to_drives, Stream::write_drives});
  } else {
    if (far) hops.push_back({drives, host, Kind::from_drives, Stream::read_drives});
    hops.push_back({host, device, Kind::from_host, Stream::copy_in});
  }
  return hops;
}

program::Operation select_all(const Block& block, const std::vector<int>& from,
                              const std::vector<int>& to) {
  return {.action = program::Action::select,
          .inputs = operands_of(block, from),
          .outputs = operands_of(block, to)};
}

}  // namespace

/// A task for each hop; what it copies is freed where it was.
int Activations::host_block(const Portion& portion, bool out) const {
  const Keep::Where where = portion.rule->where;
  const std::string key =
      (out ? "out" : "in") + std::to_string(static_cast<int>(where)) + key_of(portion);
  return draft().shared(key, [&] {
    Block block{.name = (out ? "copy out " : "copy in ") + name_of(portion)};
    const std::vector<Hop> hops = way(where, out);
    std::vector<int> from = add_slots(block, portion, false, hops.front().from);
    const Bytes bytes = bytes_of(block);
    for (const Hop& hop : hops) {
      std::vector<int> to = add_slots(block, portion, false, hop.to);
      Task& task = block.tasks.emplace_back();
      task.name = hop.kind == cost::CollectiveKind::to_drives     ? "write " + name_of(portion)
                  : hop.kind == cost::CollectiveKind::from_drives ? "read " + name_of(portion)
                                                                  : block.name;
      task.stream = hop.stream;
      task.work = program::Collective{
          .kind = hop.kind, .group = context().groups.alone(), .payload = bytes};
      if (block.tasks.size() > 1) task.waits = {static_cast<int>(block.tasks.size()) - 2};
      task.operations = {select_all(block, from, to)};
      task.reads = task.frees = from;
      task.writes = task.allocates = to;
      from = std::move(to);
    }
    return block;
  });
}

}  // namespace stratagem::lowering
