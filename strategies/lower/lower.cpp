// The whole of lowering: stages, blocks, orders, sequences.
#include "strategies/lower.hpp"

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/cells.hpp"
#include "strategies/lower/sequence.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

Program lower(const Plan& plan, const cost::Stack& stack) {
  const std::vector<std::vector<Cell>> cells = ordered_cells(plan);
  const Stages stages(plan);
  Program program;
  for (const int stage : stages.of_devices())
    program.devices.push_back({.sequence = stage, .groups = {}});
  for (const SegmentFacts& facts : stages.facts()) program.segment_tensors.push_back(facts.tensors);
  Groups groups(program);
  Blocks blocks(plan, stack, stages, groups, program);
  const SequenceContext context{plan, stack, stages, groups, blocks};
  for (int stage = 0; stage < stages.count(); ++stage) {
    program.sequences.push_back(build_sequence(context, stage, cells[stage]));
  }
  return program;
}

}  // namespace stratagem::strategies
