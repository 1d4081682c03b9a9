// Looks calls up by segment and micro-batch.
#include "execute/stale_weights.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stratagem::execute {

program::Program reading_as(const program::Program& plan, program::Program one_device,
                            const model::Graph& graph) {
  std::map<std::pair<int, int>, int> behind;  // by segment and micro-batch
  int most = 0;
  for (const program::Sequence& sequence : plan.sequences) {
    for (const program::Call& call : sequence.calls) {
      if (call.segment < 0) continue;
      int& one = behind[{call.segment, call.cell.micro_batch}];
      one = std::max(one, call.versions_behind);
      most = std::max(most, one);
    }
  }
  if (most == 0) return one_device;
  for (program::Sequence& sequence : one_device.sequences) {
    sequence = program::unrolled(sequence);  // micro-batches may read other versions
    for (program::StoredCall& call : sequence.calls.stored()) {
      const auto found = behind.find({call.segment, call.cell.micro_batch});
      if (found != behind.end()) call.versions_behind = found->second;
    }
    for (program::Resident& resident : sequence.residents) {
      const bool weight = resident.category == program::Category::parameters;
      if (!weight || resident.tensor < 0 || graph.gradient_of[resident.tensor] < 0) continue;
      resident.versions = most + 1;
      resident.bytes = resident.versions * resident.bytes;
    }
  }
  return one_device;
}

}  // namespace stratagem::execute
