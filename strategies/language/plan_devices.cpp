// Walks the axes of placements; operators that stand alike are walked once.
#include "strategies/language/plan_devices.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace stratagem::strategies {

std::vector<int> devices_of(const Plan::Placement& placement, int copy) {
  std::vector<int> devices = {placement.first_devices[copy]};
  if (!placement.listed.empty()) {
    devices = placement.listed[copy];
    std::ranges::sort(devices);
    return devices;
  }
  for (const placement::Axis& axis : placement.axes) {
    std::vector<int> more;
    more.reserve(devices.size() * axis.size);
    for (const int device : devices) {
      for (int i = 0; i < axis.size; ++i) more.push_back(device + i * axis.stride);
    }
    devices = std::move(more);
  }
  std::ranges::sort(devices);
  return devices;
}

std::vector<int> devices_of(const Plan& plan, int stage, int copy) {
  std::set<int> devices;
  const Plan::Placement* before = nullptr;
  for (const int segment : plan.stages[stage]) {
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      const Plan::Placement& here = plan.placement(op);
      const bool same = before != nullptr && before->axes == here.axes &&
                        before->first_devices == here.first_devices &&
                        before->listed == here.listed;
      before = &here;
      if (same) continue;
      for (const int device : devices_of(here, copy)) devices.insert(device);
    }
  }
  return {devices.begin(), devices.end()};
}

int device_count(const Plan& plan) {
  std::set<int> devices;
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    for (int copy = 0; copy < plan.copies().of(stage); ++copy) {
      for (const int device : devices_of(plan, stage, copy)) devices.insert(device);
    }
  }
  return static_cast<int>(devices.size());
}

}  // namespace stratagem::strategies
