// Finds the largest gather among the tasks of a sequence.
#include "lowering/updates/gather_buffers.hpp"

#include <algorithm>

namespace stratagem::lowering {
namespace {

/// What a task gathers into a buffer of the framework: its slot has no bytes (BlockDraft::finish).
Bytes gathered_by(const program::Block& block, const program::Task& task, const Groups& groups) {
  const auto* one = std::get_if<program::Collective>(&task.work);
  if (one == nullptr || task.writes.empty()) return {};
  if (block.slots[task.writes.front()].bytes > Bytes{}) return {};
  const bool ring = one->kind == cost::CollectiveKind::ring_exchange;
  return ring ? groups.ranks_in(one->group) * one->payload : one->payload;
}

}  // namespace

std::vector<program::Resident> gather_buffers(const SequenceContext& context,
                                              const SequenceDraft& draft) {
  const auto rules = cost::rules_of<cost::GatherBuffers>(context.stack);
  if (rules.empty()) return {};
  Bytes largest;
  for (const program::StoredCall& call : draft.calls()) {
    const program::Block& block = context.table[call.block];
    for (const program::Task& task : block.tasks)
      largest = std::max(largest, gathered_by(block, task, context.groups));
  }
  if (largest == Bytes{}) return {};
  return std::vector<program::Resident>(rules.front().number,
                                        {program::Category::temporaries, largest});
}

}  // namespace stratagem::lowering
