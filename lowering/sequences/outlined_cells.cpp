// Goes through the runs of every device class, as the sequences do, and notes which block each is.
#include "lowering/sequences/outlined_cells.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "lowering/cells/cell_graph.hpp"
#include "lowering/sequences/cell_runs.hpp"
#include "lowering/updates/optimizer.hpp"

namespace stratagem::lowering {
namespace {

using placement::CellPass;
using program::Category;
using strategies::Keep;

bool waits_for_backward(Category category) {
  return category == Category::activations || category == Category::checkpoints ||
         category == Category::statistics;
}

/// By number of a forward block: the bytes that it leaves on a device until the backward pass.
class LeftByBlocks {
 public:
  explicit LeftByBlocks(const SequenceContext& context) : c_(context) {}

  Bytes operator()(const SegmentRun& run) {
    const auto [known, added] = known_.try_emplace({run.block->id, run.segment});
    if (added) known->second = found(run);
    return known->second;
  }

 private:
  /// Only computations count: what other streams allocate or free may do so later or sooner. What
  /// leaves for another stage is gone when it has been sent.
  [[nodiscard]] Bytes found(const SegmentRun& run) const {
    const program::Block& block = c_.table[run.block->id];
    const SegmentFacts& facts = c_.stages.facts(run.segment);
    std::set<int> left;
    for (const program::Task& task : block.tasks) {
      if (task.stream == program::Stream::compute)
        left.insert(task.allocates.begin(), task.allocates.end());
    }
    for (const program::Task& task : block.tasks) {
      for (const int slot : task.frees) left.erase(slot);
    }
    Bytes bytes;
    for (const int number : left) {
      const program::Slot& slot = block.slots[number];
      const bool stays = slot.place == program::Residence::device &&
                         waits_for_backward(slot.category) && !leaves_stage(facts, slot.tensor);
      if (stays) bytes += slot.bytes;
    }
    return bytes;
  }

  [[nodiscard]] bool leaves_stage(const SegmentFacts& facts, int place) const {
    if (place < 0) return false;
    const model::TensorId tensor = facts.tensors[place];
    return std::ranges::count(facts.activations_out, tensor) > 0 &&
           c_.stages.of(c_.stages.reader(tensor)) != c_.stages.of(facts.segment);
  }

  const SequenceContext& c_;
  std::map<std::pair<int, int>, Bytes> known_;  ///< by block and segment
};

/// May activations or checkpoints leave the device between their passes, or stay in parts?
bool moves_activations(const SequenceContext& c) {
  return c.residency.keeps_segments() || c.residency.keeps_cells() ||
         !c.plan.divided(Keep::What::checkpoints).empty() ||
         c.plan.place_of(Keep::What::checkpoints) != Keep::Where::device;
}

/// The cells of one class.
void add_cells(std::vector<OutlinedCell>& cells, const SequenceContext& context, int device_class,
               LeftByBlocks& left) {
  const bool moves = moves_activations(context);
  const CellRuns runs(context, device_class);
  std::map<const ScheduledCell*, OutlinedCell> by_cell;
  for (const SegmentRun& run : runs.all()) {
    OutlinedCell& cell = by_cell[run.of];
    cell.blocks.push_back(run.block->id);
    if (!moves && run.of->cell.pass == CellPass::forward) cell.leaves += left(run);
  }
  std::map<std::array<int, 3>, Bytes> held;  // by stage, micro-batch and slice
  for (const ScheduledCell& of : runs.cells()) {
    const bool joins = !cells.empty() && cells.back().device_class == device_class &&
                       cells.back().place == of.place;
    if (!joins) cells.push_back({.device_class = device_class, .place = of.place});
    OutlinedCell& cell = cells.back();
    const OutlinedCell& own = by_cell[&of];
    cell.blocks.insert(cell.blocks.end(), own.blocks.begin(), own.blocks.end());
    cell.leaves += own.leaves;
    Bytes& kept = held[{of.cell.stage, of.cell.micro_batch, of.cell.slice}];
    kept += own.leaves;
    if (of.cell.pass == CellPass::backward) cell.releases += std::exchange(kept, {});
  }
}

/// Of plans with a flush; others follow from rounds.
void add_dependencies(std::vector<OutlinedCell>& cells, const SequenceContext& context) {
  if (!context.plan.updates.flush) return;
  const CellGraph graph(context.plan, context.stages, 1);
  const std::vector<int> sorted = graph.sorted();
  std::vector<int> place(graph.count(), -1);
  for (std::size_t i = 0; i < sorted.size(); ++i) place[sorted[i]] = static_cast<int>(i);
  std::vector<std::vector<int>> after(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (const int next : graph.followers(sorted[i])) {
      if (next != sorted[i]) after[place[next]].push_back(static_cast<int>(i));
    }
  }
  for (OutlinedCell& cell : cells) cell.after = after[cell.place];
}

/// On each device of a class; of gradients only where they are there all the time.
void add_residents(Outline& result, const SequenceContext& context, int device_class) {
  const SequenceDraft draft(context, device_class);
  const bool gone = says(context.stack, cost::Lifetime::gradients_until_step);
  Bytes always, gradients;
  for (const program::Resident& one : resident_buffers(context, draft, 1)) {
    if (one.place != program::Residence::device || !is_resident(one.category)) continue;
    (one.category == Category::gradients ? gradients : always) += one.bytes;
  }
  result.always.push_back(gone ? always : always + gradients);
  result.at_steps.push_back(always + gradients);
}

}  // namespace

Outline outlined(const SequenceContext& context) {
  Outline result;
  LeftByBlocks left(context);
  const auto classes = static_cast<int>(context.stages.device_classes().size());
  for (int device_class = 0; device_class < classes; ++device_class) {
    add_cells(result.cells, context, device_class, left);
    add_residents(result, context, device_class);
  }
  std::ranges::stable_sort(result.cells, {}, &OutlinedCell::place);
  add_dependencies(result.cells, context);
  return result;
}

}  // namespace stratagem::lowering
