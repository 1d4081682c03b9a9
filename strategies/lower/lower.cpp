// The whole of lowering: stages, orders, blocks, sequences, checks.
#include "strategies/lower.hpp"

#include "strategies/check.hpp"
#include "strategies/lower/blocks.hpp"
#include "strategies/lower/cells.hpp"
#include "strategies/lower/sequence.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

Program lower(const Plan& plan, const cost::Stack& stack) {
  const Stages stages(plan);
  const CellOrder order = ordered_cells(plan, stages);
  Program program;
  program.lag = order.lag;
  for (const int host : stages.host_of_device())
    program.devices.push_back({.sequence = host, .groups = {}});
  for (const SegmentFacts& facts : stages.facts()) program.segment_tensors.push_back(facts.tensors);
  std::vector<Grid> grids;
  for (const Site& site : stages.sites()) {
    if (!stages.irregular(site.stage)) grids.push_back(site.grid);
  }
  Groups groups(program, std::move(grids));
  Blocks blocks(plan, stack, stages, groups, program);
  const Parameters parameters(plan, stages, blocks);
  const std::vector<Versions> versions = weight_versions(plan, stages, order);
  const SequenceContext context{plan, stack, stages, order, versions, parameters, groups, blocks};
  for (std::size_t host = 0; host < stages.hosts().size(); ++host)
    program.sequences.push_back(build_sequence(context, static_cast<int>(host)));
  check(program);
  return program;
}

}  // namespace stratagem::strategies
