// {"op-order": SELECTOR of operators, "ring": "context"}: attention begins with the keys of its own
// rank, and goes on with those of others as a ring of messages along an axis brings them.
#include "strategies/language/operator_groups.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

void read_ring(PlanBuilder& builder, const JsonReader& reader) {
  const std::string axis = reader.at("ring").text();
  for (const model::OpId op : builder.operators(reader.at("op-order")))
    builder.plan().run_in_ring(op, axis);
}

std::vector<Primitive> write_rings(const Plan& plan) {
  OperatorGroups<std::string> groups(plan);
  for (const model::OpId op : plan.operators()) {
    const std::string& axis = plan.placement(op).ring;
    if (!axis.empty()) groups.add(axis, op);
  }
  std::vector<Primitive> result;
  for (const auto& [axis, selector] : groups.selectors())
    result.push_back(primitive("op-order", selector, {field("ring", axis)}));
  return result;
}

}  // namespace stratagem::strategies
