// Adds one call for every copy; between devices, one for each side.
#include "lowering/residency/swaps.hpp"

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

namespace {

bool swaps(const SequenceContext& context, int segment) {
  return std::ranges::binary_search(context.plan.swap.segments, segment) &&
         !context.slices.front()->left_by_forward(segment).empty();
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

Swaps::Swaps(const SequenceContext& context, SequenceDraft& draft,
             const std::vector<SegmentRun>& runs)
    : AheadOfRuns(context, draft, backward(context, runs), context.plan.swap.prefetch) {}

std::vector<SegmentRun> Swaps::backward(const SequenceContext& context,
                                        const std::vector<SegmentRun>& runs) {
  std::vector<SegmentRun> result;
  std::set<Key> seen;
  for (const SegmentRun& run : runs) {
    if (run.of->cell.pass == CellPass::forward || !swaps(context, run.segment)) continue;
    if (seen.emplace(run.segment, run.of->cell.micro_batch).second) result.push_back(run);
  }
  return result;
}

bool Swaps::leaves(const SegmentRun& run) const {
  return run.of->cell.repeat + 1 == context().plan.graph().forward_repeats &&
         swaps(context(), run.segment);
}

bool Swaps::comes_back(const SegmentRun& run) const {
  const std::optional<SegmentRun> next = next_run();
  return next && next->segment == run.segment && next->of->cell == run.of->cell;
}

void Swaps::copy_out(const SegmentRun& run, int call) {
  const int copy =
      draft().add_call(copy_block(run.segment, true, run.of->cell), run.segment, *run.of);
  for (const int task : draft().last_of_queues(call)) draft().wait(copy, 0, {call, task});
  const std::size_t ahead = static_cast<std::size_t>(context().plan.swap.prefetch) + 1;
  if (out_.size() >= ahead) {
    for (const int task : draft().first_of_queues(call))
      draft().wait(call, task, out_[out_.size() - ahead]);
  }
  out_.push_back({copy, 0});
  left_[{run.segment, run.of->cell.micro_batch}] = {copy, 0};
}

bool Swaps::may_issue(std::size_t index) const {
  return left_.contains({run(index).segment, run(index).of->cell.micro_batch});
}

Written Swaps::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  const int copy = draft().add_call(copy_block(of.segment, false, of.of->cell), of.segment, *of.of);
  draft().wait(copy, 0, left_.at({of.segment, of.of->cell.micro_batch}));
  wait_for_room(index, copy);
  return {copy, 0};
}

void Swaps::connect(std::size_t index, int call) {
  for (const int task : draft().first_of_queues(call)) draft().wait(call, task, brought(index));
}

void Swaps::add_copies_for_peers() {
  if (context().plan.swap.peers.empty()) return;
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

void Swaps::add_copies_for_cell(const ScheduledCell& of, std::map<Key, Written>& taken_in) {
  const Cell& cell = of.cell;
  const bool forward = cell.pass == CellPass::forward;
  if (forward && cell.repeat + 1 != context().plan.graph().forward_repeats) return;
  for (const int segment : segments_run(context(), cell)) {
    const auto peer = context().plan.swap.peers.find(segment);
    if (peer == context().plan.swap.peers.end() || !swaps(context(), segment)) continue;
    if (!draft().runs_replica(draft().replica_of(peer->second, cell))) continue;
    const Key key(segment, cell.micro_batch);
    if (forward) {
      taken_in[key] = {draft().add_call(peer_block(segment, true, true, cell), -1, of), 0};
    } else if (const auto found = taken_in.find(key); found != taken_in.end()) {
      const int call = draft().add_call(peer_block(segment, false, true, cell), -1, of);
      draft().wait(call, 0, found->second);
      taken_in.erase(found);
    }
  }
}

int Swaps::copy_block(int segment, bool out, const Cell& cell) const {
  if (context().plan.swap.peers.contains(segment)) return peer_block(segment, out, false, cell);
  const int forward = context().slices.front()->of(segment).forward->id;
  return draft().shared((out ? "out " : "in ") + std::to_string(forward),
                        [&] { return lowered_copy(segment, out); });
}

/// A block of one task, without work, that frees what a segment keeps or gives it room, as the
/// segment's devices name it or as guests do.
Block Swaps::buffers(int segment, bool freed, bool guest) const {
  const SegmentFacts& facts = context().stages.facts(segment);
  Block block{.name = "", .slots = {}, .tasks = {Task{}}};
  Task& task = block.tasks.front();
  for (const auto& [place, border] : context().slices.front()->left_by_forward(segment)) {
    const model::Tensor& tensor = context().plan.graph().tensors[facts.tensors[place]];
    const Bytes bytes =
        local_bytes(tensor, border.layout, context().stages.grid_of_segment(segment));
    const auto slot = static_cast<int>(block.slots.size());
    (freed ? task.reads : task.writes).push_back(slot);
    (freed ? task.frees : task.allocates).push_back(slot);
    block.slots.push_back(
        {tensor.name, guest ? facts.tensors[place] : place, bytes, border.category});
  }
  return block;
}

/// One side of a copy between two stages: of the segment's own devices or of those that take it in.
int Swaps::peer_block(int segment, bool out, bool guest, const Cell& cell) const {
  const int stage = context().stages.of(segment);
  const Grid& owner = draft().replica(stage, cell).grid;
  const Grid& lender = draft().replica(context().plan.swap.peers.at(segment), cell).grid;
  if (owner.axes != lender.axes || !owner.listed.empty() || owner == lender) {
    throw InputError("", path_of(&strategies::Options::swap),
                     "stages on equal grids of other devices where one takes in what another swaps",
                     "");
  }
  const std::vector<Grid> direction = out ? std::vector{owner, lender} : std::vector{lender, owner};
  // Where two stages take in each other's activations, each direction has a queue of its own.
  const int purpose = -3 - 2 * draft().replica_of(stage, cell) - (out ? 1 : 0);
  const int group = context().groups.across(direction, purpose);
  const int forward = context().slices.front()->of(segment).forward->id;
  const std::string name = guest ? "guest " + std::to_string(segment) : "own";
  return draft().shared(
      name + (out ? " out " : " in ") + std::to_string(forward) + "/" + std::to_string(group), [&] {
        const bool sends = out != guest;
        Block block = buffers(segment, sends, guest);
        block.name = (out ? "lend " : "take back ") + context().plan.graph().segments[segment].name;
        Task& task = block.tasks.front();
        task.name = block.name;
        task.stream = sends ? Stream::send_forward : Stream::receive_forward;
        task.work = program::Collective{
            .kind = cost::CollectiveKind::send, .group = group, .payload = bytes_of(block)};
        return block;
      });
}

Block Swaps::lowered_copy(int segment, bool out) const {
  Block block = buffers(segment, out, false);
  block.name = (out ? "copy out " : "copy in ") + context().plan.graph().segments[segment].name;
  Task& task = block.tasks.front();
  task.name = block.name;
  task.stream = out ? Stream::copy_out : Stream::copy_in;
  task.work = program::Collective{
      .kind = out ? cost::CollectiveKind::to_host : cost::CollectiveKind::from_host,
      .group = context().groups.alone(),
      .payload = bytes_of(block)};
  // What leaves the device lies on the host until it comes back.
  const std::size_t buffers = block.slots.size();
  for (std::size_t slot = 0; slot < buffers; ++slot) {
    const auto there = static_cast<int>(block.slots.size());
    block.slots.push_back(block.slots[slot]);
    block.slots.back().place = program::Residence::host;
    (out ? task.writes : task.reads).push_back(there);
    (out ? task.allocates : task.frees).push_back(there);
  }
  return block;
}

}  // namespace stratagem::lowering
