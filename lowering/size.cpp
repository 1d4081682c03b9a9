// Counts operators of cells, since their tasks are not known before lowering.
#include "lowering/size.hpp"

#include <fmt/format.h>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::lowering {

using strategies::Plan;

namespace {

/// The largest published run (200B parameters on 10 stages, 2,048 micro-batches, full
/// recomputation) takes 2.2 GB by this estimate; a trillion on 3,072 GPUs takes 0.9.
constexpr Bytes largest{2.4e9};

/// Operators of a stage: of its forward pass, and all that one micro-batch runs there.
struct StageWork {
  double forward = 0;
  double all = 0;
  double segments = 0;
};

StageWork work_of(const Plan& plan, int stage) {
  StageWork work;
  for (const int segment : plan.stages[stage]) {
    const model::Segment& one = plan.graph().segments[segment];
    work.forward += static_cast<double>(one.forward.size());
    work.all += static_cast<double>(one.forward.size() * plan.graph().forward_repeats +
                                    one.backward.size());
    for (const model::OpId op : one.forward) {
      const auto [whole, part] = plan.groups_of(op);
      work.all += (whole >= 0 ? 1 : 0) + (part >= 0 ? 1 : 0);
    }
    work.segments += 1;
  }
  return work;
}

}  // namespace

Bytes Size::memory() const { return (180 * tasks + 13 * waiting + 2900 * operators) * 1_B; }

Size size_of(const Plan& plan, const Stages& stages) {
  std::vector<StageWork> works;
  for (int stage = 0; stage < stages.count(); ++stage) works.push_back(work_of(plan, stage));
  Size size{.sequences = static_cast<int>(stages.device_classes().size()),
            .segments = static_cast<int>(plan.graph().segments.size()),
            .operators = static_cast<double>(plan.graph().operators.size())};
  for (const DeviceClass& device_class : stages.device_classes()) {
    StageWork here;
    for (const int replica : device_class.replicas) {
      const int stage = stages.replicas()[replica].stage;
      here.forward += works[stage].forward;
      here.segments += works[stage].segments;
      size.tasks += works[stage].all * plan.micro_batches * plan.slices() / plan.copies().of(stage);
    }
    size.waiting += here.forward * here.segments * plan.slices();
  }
  return size;
}

void refuse_size(const Plan& plan, const Stages& stages) {
  const Size size = size_of(plan, stages);
  if (size.memory() <= largest) return;
  throw InputError("", "",
                   "a run that is estimated to take at most " + to_text(largest) +
                       " to simulate (estimates may be 40 % low): fewer layers, micro-batches "
                       "or stages that are not alike",
                   fmt::format("one that is estimated to take {}: {:.2g} tasks of {} segments and "
                               "{} micro-batches in {} sequences",
                               to_text(size.memory()), size.tasks, size.segments,
                               plan.micro_batches, size.sequences));
}

}  // namespace stratagem::lowering
