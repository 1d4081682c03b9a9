// Adds one call for every copy; between devices, one for each side.
#include "lowering/residency/activations.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "placement/local_part.hpp"
#include "strategies/parallel/options.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using placement::Grid;
using program::Block;
using program::Stream;
using program::Task;
using strategies::Keep;

namespace {

bool leaves_device(const SequenceContext& context, int segment) {
  return context.plan.residency.of_segment(segment) != nullptr &&
         !context.slices.front()->left_by_forward(segment).empty();
}

/// The same of all rules for segments.
int ahead_of_segments(const strategies::Plan& plan) {
  for (const Keep& rule : plan.residency.rules()) {
    if (!rule.segments.empty()) return rule.ahead.value_or(0);
  }
  return 0;
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
    : AheadOfRuns(context, draft, backward(context, runs), ahead_of_segments(context.plan)) {}

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
  const std::size_t ahead = static_cast<std::size_t>(ahead_of_segments(context().plan)) + 1;
  if (out_.size() >= ahead) {
    for (const int task : draft().first_of_queues(call))
      draft().wait(call, task, out_[out_.size() - ahead]);
  }
  out_.push_back({copy, 0});
  left_[{run.segment, run.of->cell.micro_batch}] = {copy, 0};
}

bool Activations::may_issue(std::size_t index) const {
  return left_.contains({run(index).segment, run(index).of->cell.micro_batch});
}

Written Activations::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  const int copy = add_copy(portion_of(of.segment), false, false, *of.of);
  draft().wait(copy, 0, left_.at({of.segment, of.of->cell.micro_batch}));
  wait_for_room(index, copy);
  return {copy, 0};
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
  const Keep* rule = context().plan.residency.of_cell(cell.stage, cell.micro_batch);
  if (rule == nullptr || cell.pass == CellPass::weight) return std::nullopt;
  return Portion{context().plan.stages[cell.stage], rule};
}

Activations::Portion Activations::portion_of(int segment) const {
  return {{segment}, context().plan.residency.of_segment(segment)};
}

std::vector<Activations::Portion> Activations::portions_of(const Cell& cell) const {
  if (const auto whole = portion_of(cell)) return {*whole};
  std::vector<Portion> portions;
  for (const int segment : segments_run(context(), cell)) {
    if (leaves_device(context(), segment)) portions.push_back(portion_of(segment));
  }
  return portions;
}

void Activations::add_copies_for_peers() {
  const auto lends = [](const Keep& rule) { return rule.where == Keep::Where::stage; };
  if (std::ranges::none_of(context().plan.residency.rules(), lends)) return;
  std::map<Key, Written> taken_in;
  std::set<int> served;  // replicas, of which all device classes run the same cells
  for (const std::vector<ScheduledCell>& cells : context().order.rounds) {
    std::set<int> here;
    for (const ScheduledCell& of : cells) {
      const int replica = draft().replica_of(of.cell.stage, of.cell);
      if (served.contains(replica)) continue;
      here.insert(replica);
      add_copies_for_cell(of, taken_in);
    }
    served.merge(here);
  }
}

void Activations::add_copies_for_cell(const ScheduledCell& of, std::map<Key, Written>& taken_in) {
  const Cell& cell = of.cell;
  const bool forward = cell.pass == CellPass::forward;
  if (forward && !trains(context(), cell)) return;
  for (const Portion& portion : portions_of(cell)) {
    if (portion.rule->where != Keep::Where::stage) continue;
    if (!draft().runs_replica(draft().replica_of(portion.rule->stage, cell))) continue;
    const Key key(portion.segments.front(), cell.micro_batch);
    if (forward) {
      taken_in[key] = {add_copy(portion, true, true, of), 0};
    } else if (const auto found = taken_in.find(key); found != taken_in.end()) {
      const int call = add_copy(portion, false, true, of);
      draft().wait(call, 0, found->second);
      taken_in.erase(found);
    }
  }
}

int Activations::add_copy(const Portion& portion, bool out, bool guest, const ScheduledCell& of) {
  const bool peer = portion.rule->where == Keep::Where::stage;
  const int block = peer ? peer_block(portion, out, guest, of.cell) : host_block(portion, out);
  const bool of_one = !guest && portion.segments.size() == 1;
  return draft().add_call(block, of_one ? portion.segments.front() : -1, of);
}

/// A block of one task, without work, that frees what segments keep or gives it room. A call of one
/// segment names tensors as the segment does.
Block Activations::buffers(const Portion& portion, bool freed, bool guest) const {
  const bool of_one = !guest && portion.segments.size() == 1;
  Block block{.name = "", .slots = {}, .tasks = {Task{}}};
  Task& task = block.tasks.front();
  for (const int segment : portion.segments) {
    const SegmentFacts& facts = context().stages.facts(segment);
    for (const auto& [place, border] : context().slices.front()->left_by_forward(segment)) {
      const model::Tensor& tensor = context().plan.graph().tensors[facts.tensors[place]];
      const Bytes bytes =
          local_bytes(tensor, border.layout, context().stages.grid_of_segment(segment));
      const auto slot = static_cast<int>(block.slots.size());
      (freed ? task.reads : task.writes).push_back(slot);
      (freed ? task.frees : task.allocates).push_back(slot);
      block.slots.push_back(
          {tensor.name, of_one ? place : facts.tensors[place], bytes, border.category});
    }
  }
  return block;
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
    throw InputError("", path_of(&strategies::Options::swap),
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
    Block block = buffers(portion, sends, guest);
    block.name = (out ? "lend " : "take back ") + name_of(portion);
    Task& task = block.tasks.front();
    task.name = block.name;
    task.stream = sends ? Stream::send_forward : Stream::receive_forward;
    task.work = program::Collective{
        .kind = cost::CollectiveKind::send, .group = group, .payload = bytes_of(block)};
    return block;
  });
}

/// What leaves the device lies on the host until it comes back.
int Activations::host_block(const Portion& portion, bool out) const {
  return draft().shared((out ? "out" : "in") + key_of(portion), [&] {
    Block block = buffers(portion, out, false);
    block.name = (out ? "copy out " : "copy in ") + name_of(portion);
    Task& task = block.tasks.front();
    task.name = block.name;
    task.stream = out ? Stream::copy_out : Stream::copy_in;
    task.work = program::Collective{
        .kind = out ? cost::CollectiveKind::to_host : cost::CollectiveKind::from_host,
        .group = context().groups.alone(),
        .payload = bytes_of(block)};
    const std::size_t buffers = block.slots.size();
    for (std::size_t slot = 0; slot < buffers; ++slot) {
      const auto there = static_cast<int>(block.slots.size());
      block.slots.push_back(block.slots[slot]);
      block.slots.back().place = program::Residence::host;
      (out ? task.writes : task.reads).push_back(there);
      (out ? task.allocates : task.frees).push_back(there);
    }
    return block;
  });
}

}  // namespace stratagem::lowering
