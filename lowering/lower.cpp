// The passes of the lowering, in order. Above each: what holds when it is done.
#include "lowering/lower.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lowering/blocks/blocks.hpp"
#include "lowering/cells/cells.hpp"
#include "lowering/invariants.hpp"
#include "lowering/outline.hpp"
#include "lowering/peers.hpp"
#include "lowering/refusals.hpp"
#include "lowering/sequences/outlined_cells.hpp"
#include "lowering/sequences/roll.hpp"
#include "lowering/sequences/sequence.hpp"
#include "lowering/size.hpp"
#include "lowering/stack/host_waits.hpp"
#include "lowering/stages/stages.hpp"

namespace stratagem::lowering {
namespace {

using strategies::Plan;

/// A program with devices and grids, and without tasks.
program::Program empty_program(const Stages& stages, const CellOrder& order) {
  program::Program program;
  program.lag = order.lag;
  for (const int device_class : stages.class_of_device())
    program.devices.push_back({.sequence = device_class, .groups = {}});
  for (const SegmentFacts& facts : stages.facts()) program.segment_tensors.push_back(facts.tensors);
  for (const Replica& replica : stages.replicas()) program.grids.push_back(replica.grid);
  return program;
}

/// The passes that say what every cell runs, before anything is put between cells.
struct CellPasses {
  CellPasses(const Plan& plan, const cost::Stack& stack, const cost::Training& training);

  [[nodiscard]] SequenceContext context(const Plan& plan, const cost::Stack& stack,
                                        const cost::Training& training) {
    return {plan,        stack,   training, stages, order,           versions,
            *parameters, *groups, table,    slices, redistributions, plan.residency};
  }

  Stages stages;
  CellOrder order;
  program::Program program;
  std::optional<Groups> groups;
  BlockTable table{program};
  std::vector<std::unique_ptr<Blocks>> slices;
  std::optional<Parameters> parameters;
  std::vector<Versions> versions;
  std::map<std::array<int, 4>, RedistributionBlocks> redistributions;
};

CellPasses::CellPasses(const Plan& plan, const cost::Stack& stack, const cost::Training& training)
    // Stages: every segment is on a stage, every stage on a grid in each of its copies, every
    // device in one device class. It is known what flows between stages.
    : stages(plan) {
  check_after("stages", [&] { expect_stages(stages); });
  refuse_size(plan, stages);

  // Cells: every device class has an order of all cells of its stages. After the stages, since it
  // follows what flows; before all else, since a plan with contradicting orders ends here.
  order = ordered_cells(plan, stages);
  check_after("cells", [&] { expect_cells(plan, stages, order); });
  refuse_before_blocks(plan, stages, stack, training.precision);

  // Blocks: every segment has the tasks of its passes, with the collectives inside it, once for all
  // segments, cells and devices that run the same.
  program = empty_program(stages, order);
  groups.emplace(program);
  for (const TokenSlice& slice : token_slices(plan))
    slices.push_back(
        std::make_unique<Blocks>(plan, slice, stack, training.precision, stages, *groups, table));
  check_after("blocks", [&] { expect_blocks(program); });

  // Weights: it is known which part of each parameter, gradient and state every device holds. After
  // the blocks, since these say how each device reads a parameter.
  parameters.emplace(plan, stages, *slices.front());
  refuse_before_sequences(plan, stages, *parameters, training);

  // Versions: how many versions of its weights each replica keeps, and which one a cell reads.
  versions = weight_versions(plan, stages, order);
}

}  // namespace

program::Program lower(const Plan& plan, const cost::Stack& stack, const cost::Training& training,
                       const Neighbours& neighbours) {
  CellPasses passes(plan, stack, training);
  program::Program& program = passes.program;

  // Sequences: every device class has its calls of blocks in the order of its cells, with all that
  // passes between calls: messages, what waits elsewhere, reductions, steps. Which peers hold what
  // is lent is known first, since both sides have calls for it.
  SequenceContext context = passes.context(plan, stack, training);
  context.residency = with_peers(context, neighbours);
  const auto classes = static_cast<int>(passes.stages.device_classes().size());
  for (int device_class = 0; device_class < classes; ++device_class)
    program.sequences.push_back(build_sequence(context, device_class));
  check_after("sequences", [&] { expect_blocks(program); });

  // Host: it is known what the hosts wait for. Late, since it follows the order of launches.
  add_host_waits(program, stack);

  // Loops: what repeats from micro-batch to micro-batch is stored once. Last, since calls are equal
  // only if all that they and the host wait for is.
  for (program::Sequence& sequence : program.sequences) sequence = roll(std::move(sequence));
  check_with_hosts(program, stack);
  return std::move(program);
}

Outline outline(const Plan& plan, const cost::Stack& stack, const cost::Training& training) {
  CellPasses passes(plan, stack, training);
  Outline result = outlined(passes.context(plan, stack, training));
  result.program = std::move(passes.program);
  return result;
}

}  // namespace stratagem::lowering
