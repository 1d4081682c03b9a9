// Looks up the blocks of each cell's segments.
#include "lowering/sequences/cell_runs.hpp"

#include <algorithm>

#include "lowering/sequences/interleaving.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;

int CellRuns::end_of(int first) const {
  int end = first + 1;
  while (cells_[end - 1].with_next) ++end;
  return end;
}

bool CellRuns::take_turns(int first, int end) const {
  return end - first == 2 && alternate(c_, cells_[first].cell, cells_[first + 1].cell);
}

std::vector<NextRun> CellRuns::in_order(int first, int end) const {
  std::vector<NextRun> order;
  for (int i = first; i < end; ++i) {
    std::vector<SegmentRun> runs = of_cell(cells_[i]);
    for (std::size_t k = 0; k < runs.size(); ++k)
      order.push_back({i, static_cast<int>(k), runs[k], k + 1 == runs.size()});
    if (runs.empty()) order.push_back({i, 0, std::nullopt, true});
  }
  if (take_turns(first, end)) std::ranges::stable_sort(order, {}, &NextRun::k);
  return order;
}

std::vector<SegmentRun> CellRuns::all() const {
  std::vector<SegmentRun> all;
  for (int first = 0; first < static_cast<int>(cells_.size()); first = end_of(first)) {
    for (const NextRun& next : in_order(first, end_of(first))) {
      if (next.run) all.push_back(*next.run);
    }
  }
  return all;
}

/// The segments of a cell in the order in which they run; those with nothing to do are left out:
/// nothing is trained in them or before.
std::vector<SegmentRun> CellRuns::of_cell(const ScheduledCell& of) const {
  std::vector<int> segments = c_.plan.stages[of.cell.stage];
  if (of.cell.pass != CellPass::forward) std::ranges::reverse(segments);
  std::vector<SegmentRun> runs;
  for (const int segment : segments) {
    const NumberedBlock* block =
        own(of.cell, block_for(of.cell, c_.slices[of.cell.slice]->of(segment)));
    if (of.cell.pass == CellPass::backward) add_second_runs(runs, of, segment);
    if (!block->lowered.block.tasks.empty()) runs.push_back({segment, &of, block});
  }
  return runs;
}

/// Before the backward run of the last of several segments that run again together.
void CellRuns::add_second_runs(std::vector<SegmentRun>& runs, const ScheduledCell& of,
                               int segment) const {
  const Blocks& blocks = *c_.slices[of.cell.slice];
  const auto& together = blocks.together(segment);
  if (!together || together->last != segment) return;
  for (int one = together->first; one <= together->last; ++one) {
    const NumberedBlock* block = own(of.cell, blocks.of(one).again);
    if (!block->lowered.block.tasks.empty()) runs.push_back({one, &of, block, true});
  }
}

/// What the devices of this class run of a block of a cell.
const NumberedBlock* CellRuns::own(const Cell& cell, const NumberedBlock* block) const {
  if (block->parts.empty()) return block;
  const int device = c_.stages.device_classes()[device_class_].devices.front();
  const int copy = c_.plan.copy_of(cell.stage, cell.micro_batch);
  const Replica& replica = c_.stages.replicas()[c_.stages.replica(cell.stage, copy)];
  return &block->on(replica.copy, replica.grid.position(device));
}

const NumberedBlock* CellRuns::block_for(const Cell& cell, const SegmentBlocks& lowered) const {
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

}  // namespace stratagem::lowering
