// {"op-assign": SELECTOR, "axis": "tensor", "stride": 1}: part i stands i strides after the first.
#include "strategies/language/operator_groups.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

void read_axis(PlanBuilder& builder, const JsonReader& reader) {
  const std::string axis = reader.at("axis").text();
  const auto stride = static_cast<int>(reader.at("stride").between(0, 1'000'000));
  for (const model::OpId op : builder.operators(reader.at("op-assign")))
    builder.assign(op, axis, stride, reader.path());
}

std::vector<Primitive> write_axes(const Plan& plan) {
  OperatorGroups<std::pair<std::string, int>> groups(plan);
  for (const model::OpId op : plan.operators()) {
    if (!plan.placement(op).listed.empty()) continue;  // see device_list.cpp
    for (const placement::Axis& axis : plan.placement(op).axes)
      groups.add({axis.name, axis.stride}, op);
  }
  std::vector<Primitive> result;
  for (const auto& [axis, selector] : groups.selectors()) {
    result.push_back(primitive("op-assign", selector,
                               {field("axis", axis.first), field("stride", axis.second)}));
  }
  return result;
}

}  // namespace stratagem::strategies
