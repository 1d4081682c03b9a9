// Goes through the runs of every device class, as the sequences do, and notes which block each is.
#include "lowering/sequences/outlined_cells.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lowering/sequences/cell_runs.hpp"
#include "lowering/updates/optimizer.hpp"

namespace stratagem::lowering {
namespace {

using placement::Cell;
using placement::CellPass;
using program::Category;
using strategies::Keep;

bool waits_for_backward(Category category) {
  return category == Category::activations || category == Category::checkpoints ||
         category == Category::statistics;
}

/// What a segment computes for later stages.
std::vector<model::TensorId> to_after(const SequenceContext& context, const SegmentFacts& facts) {
  std::vector<model::TensorId> tensors = facts.activations_out;
  std::erase_if(tensors, [&](model::TensorId tensor) {
    return context.stages.of(context.stages.reader(tensor)) == context.stages.of(facts.segment);
  });
  return tensors;
}

/// What it reads of earlier ones.
std::vector<model::TensorId> from_before(const SequenceContext& context,
                                         const SegmentFacts& facts) {
  std::vector<model::TensorId> tensors = facts.activations_in;
  std::erase_if(tensors, [&](model::TensorId tensor) {
    return context.stages.of(context.stages.producer(tensor)) == context.stages.of(facts.segment);
  });
  return tensors;
}

/// What a forward block leaves on a device until the backward pass, what of it stays in its stage,
/// and what later segments read.
struct Left {
  Bytes all;
  Bytes here;
  Bytes passes_on;
};

/// By number of a forward block.
class LeftByBlocks {
 public:
  explicit LeftByBlocks(const SequenceContext& context) : c_(context) {}

  Left operator()(const SegmentRun& run) {
    const auto [known, added] = known_.try_emplace({run.block->id, run.segment});
    if (added) known->second = found(run);
    return known->second;
  }

 private:
  /// Only computations count: what other streams allocate or free may do so later or sooner. What
  /// leaves for another stage is gone when it has been sent.
  [[nodiscard]] Left found(const SegmentRun& run) const {
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
    Left result;
    for (const int number : left) {
      const program::Slot& slot = block.slots[number];
      if (slot.place != program::Residence::device || !waits_for_backward(slot.category)) continue;
      if (!is_among(to_after(c_, facts), facts, slot.tensor)) result.here += slot.bytes;
    }
    result.all = result.here;
    for (const auto& [tensor, bytes] : outputs_of(block, facts)) {
      result.passes_on += bytes;
      if (std::ranges::count(to_after(c_, facts), tensor) > 0) result.all += bytes;
    }
    return result;
  }

  /// What later segments read, whether or not the block frees it once it is sent.
  static std::map<model::TensorId, Bytes> outputs_of(const program::Block& block,
                                                     const SegmentFacts& facts) {
    std::map<model::TensorId, Bytes> outputs;
    for (const program::Slot& slot : block.slots) {
      if (!is_among(facts.activations_out, facts, slot.tensor)) continue;
      Bytes& bytes = outputs[facts.tensors[slot.tensor]];
      bytes = std::max(bytes, slot.bytes);
    }
    return outputs;
  }

  static bool is_among(const std::vector<model::TensorId>& tensors, const SegmentFacts& facts,
                       int place) {
    return place >= 0 && std::ranges::count(tensors, facts.tensors[place]) > 0;
  }

  const SequenceContext& c_;
  std::map<std::pair<int, int>, Left> known_;  ///< by block and segment
};

/// What earlier passes of a micro-batch leave on a device for its weight pass, by the blocks of all
/// of them: what a computation of theirs has written or read, so that it is surely there, and the
/// weight pass frees. Gathered weights do not stay.
class LeftForWeights {
 public:
  explicit LeftForWeights(const SequenceContext& context) : c_(context) {}

  /// `blocks` are those of the earlier passes on the segment.
  Bytes operator()(int weight_block, const std::vector<int>& blocks) {
    std::vector<int> key = blocks;
    key.push_back(weight_block);
    const auto [known, added] = known_.try_emplace(std::move(key));
    if (added) known->second = found(c_.table[weight_block], blocks);
    return known->second;
  }

 private:
  [[nodiscard]] Bytes found(const program::Block& weight, const std::vector<int>& blocks) const {
    std::set<std::string> there;
    for (const int number : blocks) {
      const program::Block& block = c_.table[number];
      for (const program::Task& task : block.tasks) {
        if (task.stream != program::Stream::compute) continue;
        for (const auto* slots : {&task.allocates, &task.reads}) {
          for (const int slot : *slots) there.insert(block.slots[slot].name);
        }
      }
    }
    Bytes bytes;
    std::set<int> own;
    for (const program::Task& task : weight.tasks) {
      own.insert(task.allocates.begin(), task.allocates.end());
      for (const int number : task.frees) {
        const program::Slot& slot = weight.slots[number];
        const bool stays = slot.place == program::Residence::device &&
                           slot.category != Category::gathered_parameters;
        if (stays && !own.contains(number) && there.contains(slot.name)) bytes += slot.bytes;
      }
    }
    return bytes;
  }

  const SequenceContext& c_;
  std::map<std::vector<int>, Bytes> known_;
};

/// May activations or checkpoints leave the device between their passes, or stay in parts?
bool moves_activations(const SequenceContext& c) {
  return c.residency.keeps_segments() || c.residency.keeps_cells() ||
         !c.plan.divided(Keep::What::checkpoints).empty() ||
         c.plan.place_of(Keep::What::checkpoints) != Keep::Where::device;
}

/// Which tasks of a cell read what comes to it, and write what leaves its stage.
class Borders {
 public:
  explicit Borders(const SequenceContext& context) : c_(context) {}

  /// Adds a run behind those of the cell so far.
  void add(OutlinedCell& cell, const SegmentRun& run) {
    if (run.again || run.of->cell.pass == CellPass::weight) return;
    const SegmentFacts& facts = c_.stages.facts(run.segment);
    const bool forward = run.of->cell.pass == CellPass::forward;
    const std::size_t block = cell.blocks.size() - 1;
    const LoweredBlock& lowered = run.block->lowered;
    const auto before = from_before(c_, facts), after = to_after(c_, facts);
    for (const model::TensorId tensor : forward ? before : gradients(after)) {
      const auto readers = lowered.first_readers.find(facts.place.at(tensor));
      if (readers == lowered.first_readers.end()) continue;
      int first = std::numeric_limits<int>::max();
      for (const auto& [stream, task] : readers->second) first = std::min(first, task);
      cell.readers.push_back({block, first});
    }
    for (const model::TensorId tensor : forward ? after : gradients(before)) {
      const auto writer = lowered.last_writer.find(facts.place.at(tensor));
      if (writer == lowered.last_writer.end()) {
        cell.passes_on = true;
      } else {
        cell.writers.push_back({block, writer->second});
      }
    }
  }

 private:
  [[nodiscard]] std::vector<model::TensorId> gradients(
      const std::vector<model::TensorId>& activations) const {
    std::vector<model::TensorId> result;
    for (const model::TensorId tensor : activations) {
      const model::TensorId gradient = c_.plan.graph().gradient_of[tensor];
      if (gradient >= 0) result.push_back(gradient);
    }
    return result;
  }

  const SequenceContext& c_;
};

/// What passes of a micro-batch on a stage leave for later ones.
struct Held {
  Bytes until_backward;
  std::optional<std::size_t> backward;     ///< which cell that was
  std::map<int, std::vector<int>> blocks;  ///< of the passes so far, by segment
};

/// The cells of one class.
void add_cells(Outline& result, const SequenceContext& context, int device_class,
               LeftByBlocks& left, LeftForWeights& left_for_weights) {
  std::vector<OutlinedCell>& cells = result.cells;
  const bool moves = moves_activations(context);
  const int trains = context.plan.graph().forward_repeats - 1;
  const CellRuns runs(context, device_class);
  std::map<const ScheduledCell*, std::vector<SegmentRun>> by_cell;
  for (const SegmentRun& run : runs.all()) by_cell[run.of].push_back(run);
  Borders borders(context);
  std::map<std::array<int, 3>, Held> all_held;  // by stage, micro-batch and slice
  for (const ScheduledCell& of : runs.cells()) {
    const bool joins = !cells.empty() && cells.back().device_class == device_class &&
                       cells.back().place == of.place;
    if (!joins) cells.push_back({.cell = of.cell, .device_class = device_class, .place = of.place});
    OutlinedCell& cell = cells.back();
    cell.pair = joins;
    Held& held = all_held[{of.cell.stage, of.cell.micro_batch, of.cell.slice}];
    const bool leaves = !moves && of.cell.pass == CellPass::forward && of.cell.repeat == trains;
    for (const SegmentRun& run : by_cell[&of]) {
      cell.blocks.push_back(run.block->id);
      cell.segments.push_back(run.segment);
      borders.add(cell, run);
      if (of.cell.pass != CellPass::weight) held.blocks[run.segment].push_back(run.block->id);
      if (!moves && of.cell.pass == CellPass::weight && held.backward) {
        const Bytes waits = left_for_weights(run.block->id, held.blocks[run.segment]);
        cells[*held.backward].leaves += waits;
        cell.releases += waits;
        result.segments[run.segment].waits = waits;
      }
      if (!leaves) continue;
      const Left more = left(run);
      cell.leaves += more.here;
      held.until_backward += more.here;
      result.segments[run.segment].leaves = more.all;
      result.segments[run.segment].passes_on = more.passes_on;
    }
    if (of.cell.pass != CellPass::backward) continue;
    cell.releases += std::exchange(held.until_backward, {});
    held.backward = cells.size() - 1;
  }
}

/// As data flows between stages in one iteration; what is ordered otherwise follows from the order
/// of each device, or has no effect. Of recycled passes and slices only what each has by itself.
void add_reads(std::vector<OutlinedCell>& cells, const SequenceContext& context) {
  std::map<Cell, int> places;
  for (const std::vector<ScheduledCell>& round : context.order.rounds) {
    for (const ScheduledCell& of : round) places.emplace(of.cell, of.place);
  }
  std::map<int, std::vector<int>> reads;  // by place
  const auto read = [&](Cell from, int at, int stage) {
    from.stage = stage;
    const auto place = places.find(from);
    if (place != places.end() && place->second != at) reads[at].push_back(place->second);
  };
  for (const auto& [cell, place] : places) {
    for (const StageFlow& flow : context.stages.flows()) {
      if (flow.recycled) continue;
      if (cell.pass == CellPass::forward && flow.to == cell.stage) read(cell, place, flow.from);
      if (cell.pass == CellPass::backward && flow.returns && flow.from == cell.stage)
        read(cell, place, flow.to);
    }
  }
  for (OutlinedCell& cell : cells) cell.reads = reads[cell.place];
}

/// What of residents is there when the steps begin.
OutlinedSegment sum_of(const std::vector<program::Resident>& residents) {
  OutlinedSegment sum;
  for (const program::Resident& one : residents) {
    if (one.place != program::Residence::device || !is_resident(one.category)) continue;
    sum.at_steps += one.bytes;
    if (one.category == Category::parameters) sum.parameters += one.bytes;
    if (one.category == Category::gradients) sum.gradients += one.bytes;
  }
  return sum;
}

/// On each device of a class. Always there are gradients that live from the first iteration to the
/// last.
void add_residents(Outline& result, const SequenceContext& context, int device_class) {
  const SequenceDraft draft(context, device_class);
  const ParameterBuffers buffers(context, draft, 1);
  std::map<int, OutlinedSegment> segments;
  OutlinedSegment all = sum_of(buffers_beside(context, draft));
  for (const auto& [parameter, local] : context.parameters.on(device_class)) {
    const OutlinedSegment own = sum_of(buffers.of(parameter, local));
    for (OutlinedSegment* sum : {&all, &segments[local.segments.front()]}) {
      sum->at_steps += own.at_steps;
      sum->parameters += own.parameters;
      sum->gradients += own.gradients;
    }
  }
  for (const auto& [number, own] : segments) {
    OutlinedSegment& segment = result.segments[number];
    segment.at_steps = own.at_steps;
    segment.parameters = own.parameters;
    segment.gradients = own.gradients;
  }
  const bool gone = says(context.stack, cost::Lifetime::gradients_until_step);
  result.always.push_back(gone ? all.at_steps - all.gradients : all.at_steps);
  result.at_steps.push_back(all.at_steps);
}

}  // namespace

Outline outlined(const SequenceContext& context) {
  Outline result;
  result.segments.resize(context.plan.graph().segments.size());
  LeftByBlocks left(context);
  LeftForWeights left_for_weights(context);
  const auto classes = static_cast<int>(context.stages.device_classes().size());
  for (int device_class = 0; device_class < classes; ++device_class) {
    add_cells(result, context, device_class, left, left_for_weights);
    add_residents(result, context, device_class);
  }
  std::ranges::stable_sort(result.cells, {}, &OutlinedCell::place);
  add_reads(result.cells, context);
  return result;
}

}  // namespace stratagem::lowering
