// Operators that stand alike are asked once.
#include "strategies/language/plan_devices.hpp"

#include <algorithm>
#include <set>

namespace stratagem::strategies {

std::vector<int> devices_of(const Plan::Placement& placement, int copy) {
  if (placement.listed.empty())
    return placement::Grid{placement.first_devices[copy], placement.axes, {}}.devices();
  std::vector<int> devices = placement.listed[copy];
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
