// Looks calls up by segment and micro-batch.
#include "execute/stale_weights.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stratagem::execute {

strategies::Program reading_as(const strategies::Program& plan, strategies::Program one_device,
                               const model::Graph& graph) {
  std::map<std::pair<int, int>, int> behind;  // by segment and micro-batch
  int most = 0;
  for (const strategies::Sequence& sequence : plan.sequences) {
    for (const strategies::Call& call : sequence.calls) {
      if (call.segment < 0) continue;
      int& one = behind[{call.segment, call.cell.micro_batch}];
      one = std::max(one, call.versions_behind);
      most = std::max(most, one);
    }
  }
  if (most == 0) return one_device;
  for (strategies::Sequence& sequence : one_device.sequences) {
    for (strategies::Call& call : sequence.calls) {
      const auto found = behind.find({call.segment, call.cell.micro_batch});
      if (found != behind.end()) call.versions_behind = found->second;
    }
    for (strategies::Resident& resident : sequence.residents) {
      const bool weight = resident.category == strategies::Category::parameters;
      if (!weight || resident.tensor < 0 || graph.gradient_of[resident.tensor] < 0) continue;
      resident.versions = most + 1;
      resident.bytes = resident.versions * resident.bytes;
    }
  }
  return one_device;
}

}  // namespace stratagem::execute
