// {"op-assign": SELECTOR, "devices": [0, 3, 1]}: every part of an operator on a device of its own.
#include "strategies/language/operator_groups.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

/// Parts in the order of the op-trans, those of the last one fastest.
void read_device_list(PlanBuilder& builder, const JsonReader& reader) {
  const int copies = builder.plan().copies().most();
  const int copy =
      reader.find("copy") ? static_cast<int>(reader.at("copy").between(0, copies - 1)) : 0;
  std::vector<int> devices;
  for (const JsonReader& device : reader.at("devices").elements())
    devices.push_back(static_cast<int>(device.between(0, 1'000'000)));
  for (const model::OpId op : builder.operators(reader.at("op-assign")))
    builder.assign(op, devices, copy, reader.path());
}

std::vector<Primitive> write_device_lists(const Plan& plan) {
  std::vector<Primitive> result;
  for (int copy = 0; copy < plan.copies().most(); ++copy) {
    OperatorGroups<std::vector<int>> groups(plan);
    for (const model::OpId op : plan.operators()) {
      const Plan::Placement& placement = plan.placement(op);
      if (!placement.listed.empty() && copy < plan.copies_of(op))
        groups.add(placement.listed[copy], op);
    }
    for (const auto& [devices, selector] : groups.selectors()) {
      result.push_back(primitive("op-assign", selector, {list_field("devices", devices)}));
      if (plan.copies().most() > 1) result.back().fields.push_back(field("copy", copy));
    }
  }
  return result;
}

}  // namespace stratagem::strategies
