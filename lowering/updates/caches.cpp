// Follows the operators of the class's segments to the caches among their operands.
#include "lowering/updates/caches.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "lowering/stages/operands.hpp"

namespace stratagem::lowering {
namespace {

using program::Category;
using program::Resident;

/// The part of an operand that an operator reads on a device.
const placement::Part* part_of_device(const placement::Distribution& distribution,
                                      const placement::Grid& grid, int device) {
  return grid.listed.empty() ? &distribution.front().part : part_on(distribution, device);
}

class ClassCaches {
 public:
  ClassCaches(const SequenceContext& context, int device_class)
      : c_(context),
        device_(context.stages.device_classes()[device_class].devices.front()),
        cells_(context.order.rounds[device_class]) {}

  void add(const Replica& replica) {
    const model::Graph& graph = c_.plan.graph();
    const auto micro_batches = static_cast<double>(micro_batches_of(replica));
    for (const int segment : c_.plan.stages[replica.stage]) {
      for (const model::OpId id : graph.segments[segment].forward) {
        const std::vector<model::TensorId>& inputs = graph.operators[id].inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          const model::Tensor& tensor = graph.tensors[inputs[i]];
          if (tensor.role != model::Role::cache || !seen_.insert(inputs[i]).second) continue;
          const Operands operands = operands_of(c_.plan, replica.grid, replica.copy, id);
          const placement::Part* part = part_of_device(operands.reads[i], replica.grid, device_);
          if (part == nullptr) continue;
          found.push_back({.category = Category::caches,
                           .bytes = micro_batches * bytes_of(tensor, *part, replica.grid)});
        }
      }
    }
  }

  std::vector<Resident> found;

 private:
  [[nodiscard]] std::int64_t micro_batches_of(const Replica& replica) const {
    return std::ranges::count_if(cells_, [&](const ScheduledCell& one) {
      return one.cell.stage == replica.stage && one.cell.pass == placement::CellPass::forward &&
             one.cell.slice == 0 && one.cell.repeat == 0 &&
             c_.plan.copy_of(one.cell.stage, one.cell.micro_batch) == replica.copy;
    });
  }

  const SequenceContext& c_;
  int device_;
  const std::vector<ScheduledCell>& cells_;
  std::set<model::TensorId> seen_;
};

}  // namespace

std::vector<Resident> caches(const SequenceContext& context, const SequenceDraft& draft) {
  ClassCaches all(context, draft.device_class());
  for (const int replica : context.stages.device_classes()[draft.device_class()].replicas)
    all.add(context.stages.replicas()[replica]);
  return std::move(all.found);
}

}  // namespace stratagem::lowering
