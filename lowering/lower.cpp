// The passes of the lowering, in order. Above each: what holds when it is done.
#include "lowering/lower.hpp"

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "lowering/blocks/blocks.hpp"
#include "lowering/cells/cells.hpp"
#include "lowering/invariants.hpp"
#include "lowering/peers.hpp"
#include "lowering/refusals.hpp"
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

}  // namespace

program::Program lower(const Plan& plan, const cost::Stack& stack, const cost::Training& training,
                       const Neighbours& neighbours) {
  // Stages: every segment is on a stage, every stage on a grid in each of its copies, every device
  // in one device class. It is known what flows between stages.
  const Stages stages(plan);
  expect_stages(stages);
  refuse_size(plan, stages);

  // Cells: every device class has an order of all cells of its stages. After the stages, since it
  // follows what flows; before all else, since a plan with contradicting orders ends here.
  const CellOrder order = ordered_cells(plan, stages);
  expect_cells(plan, stages, order);
  refuse_before_blocks(plan, stages, stack, training.precision);

  // Blocks: every segment has the tasks of its passes, with the collectives inside it, once for all
  // segments, cells and devices that run the same.
  program::Program program = empty_program(stages, order);
  Groups groups(program);
  BlockTable table(program);
  std::vector<std::unique_ptr<Blocks>> slices;
  for (const TokenSlice& slice : token_slices(plan))
    slices.push_back(
        std::make_unique<Blocks>(plan, slice, stack, training.precision, stages, groups, table));
  expect_blocks(program);

  // Weights: it is known which part of each parameter, gradient and state every device holds. After
  // the blocks, since these say how each device reads a parameter.
  const Parameters parameters(plan, stages, *slices.front());
  refuse_before_sequences(plan, stages, parameters, training);

  // Versions: how many versions of its weights each replica keeps, and which one a cell reads.
  const std::vector<Versions> versions = weight_versions(plan, stages, order);

  // Sequences: every device class has its calls of blocks in the order of its cells, with all that
  // passes between calls: messages, what waits elsewhere, reductions, steps. Which peers hold what
  // is lent is known first, since both sides have calls for it.
  std::map<std::array<int, 4>, RedistributionBlocks> redistributions;
  SequenceContext context{plan,       stack,  training, stages, order,           versions,
                          parameters, groups, table,    slices, redistributions, plan.residency};
  context.residency = with_peers(context, neighbours);
  for (std::size_t device_class = 0; device_class < stages.device_classes().size(); ++device_class)
    program.sequences.push_back(build_sequence(context, static_cast<int>(device_class)));
  expect_blocks(program);

  // Host: it is known what the hosts wait for. Late, since it follows the order of launches.
  add_host_waits(program, stack);

  // Loops: what repeats from micro-batch to micro-batch is stored once. Last, since calls are equal
  // only if all that they and the host wait for is.
  for (program::Sequence& sequence : program.sequences) sequence = roll(std::move(sequence));
  check_with_hosts(program, stack);
  return program;
}

}  // namespace stratagem::lowering
