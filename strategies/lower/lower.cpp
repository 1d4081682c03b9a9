// The whole of lowering: stages, orders, blocks, sequences, checks.
#include "strategies/lower.hpp"

#include <array>
#include <map>
#include <memory>

#include "base/input_error.hpp"
#include "strategies/check.hpp"
#include "strategies/lower/blocks.hpp"
#include "strategies/lower/cells.hpp"
#include "strategies/lower/sequence.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

Program lower(const Plan& plan, const cost::Stack& stack) {
  const Stages stages(plan);
  const CellOrder order = ordered_cells(plan, stages);
  if (plan.slices() > 1 && !plan.evictions().empty())
    throw InputError("", "/strategy", "evictions of whole micro-batches, not of token slices", "");
  for (int stage = 0; plan.slices() > 1 && stage < stages.count(); ++stage) {
    if (stages.irregular(stage))
      throw InputError("", "/strategy/token_slices", "stages on one grid in equal parts", "");
  }
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
  BlockTable table(program);
  std::vector<std::unique_ptr<Blocks>> slices;
  for (const TokenSlice& slice : token_slices(plan))
    slices.push_back(std::make_unique<Blocks>(plan, slice, stack, stages, groups, table));
  const Parameters parameters(plan, stages, *slices.front());
  const std::vector<Versions> versions = weight_versions(plan, stages, order);
  std::map<std::array<int, 4>, CrossingBlocks> crossings;
  const SequenceContext context{plan,       stack,  stages, order,  versions,
                                parameters, groups, table,  slices, crossings};
  for (std::size_t host = 0; host < stages.hosts().size(); ++host)
    program.sequences.push_back(build_sequence(context, static_cast<int>(host)));
  check(program);
  return program;
}

}  // namespace stratagem::strategies
