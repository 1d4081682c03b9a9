// {"op-trans": SELECTOR, "dim": "n", "parts": 4, "axis": "tensor"}: operators in parts along a new
// axis.
#include <algorithm>

#include "strategies/language/operator_groups.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

struct SplitAlong {
  std::string axis;
  std::string dim;
  int parts = 1;
  bool uneven = false;
  bool inner = false;
  friend bool operator==(const SplitAlong&, const SplitAlong&) = default;
};

/// Where every part has a device of its own an axis needs no name, but a file tells axes apart by
/// it.
std::string name_of(const Plan::Placement& placement, std::size_t axis) {
  const std::string& name = placement.axes[axis].name;
  return name.empty() ? "axis " + std::to_string(axis) : name;
}

}  // namespace

/// A "dim" that is null or empty replicates; "uneven" lets parts differ by one; "inner" makes parts
/// of the parts that other axes make.
void read_split(PlanBuilder& builder, const JsonReader& reader) {
  const JsonReader dim = reader.at("dim");
  Split split{.dim = dim.is_null() ? "" : dim.text(),
              .parts = static_cast<int>(reader.at("parts").between(1, 1'000'000))};
  if (const auto uneven = reader.find("uneven")) split.uneven = uneven->boolean();
  if (const auto inner = reader.find("inner")) split.inner = inner->boolean();
  const std::string axis = reader.at("axis").text();
  if (axis.empty()) reader.at("axis").fail("a name");
  for (const model::OpId op : builder.operators(reader.at("op-trans")))
    builder.split(op, split, axis, reader.path());
}

/// Axis after axis, those of each in the order of the operators.
std::vector<Primitive> write_splits(const Plan& plan) {
  OperatorGroups<SplitAlong> groups(plan);
  std::vector<std::string> axes;
  for (const model::OpId op : plan.operators()) {
    const Plan::Placement& placement = plan.placement(op);
    for (std::size_t i = 0; i < placement.axes.size(); ++i) {
      const placement::Axis& axis = placement.axes[i];
      const std::string name = name_of(placement, i);
      groups.add({name, placement.dims[i], axis.size, placement.uneven[i], placement.inner[i]}, op);
      if (std::ranges::find(axes, name) == axes.end()) axes.push_back(name);
    }
  }
  const auto selectors = groups.selectors();
  std::vector<Primitive> result;
  for (const std::string& axis : axes) {
    for (const auto& [split, selector] : selectors) {
      if (split.axis != axis) continue;
      Field dim = field("dim", split.dim);
      if (split.dim.empty()) dim = {"dim", Json(), "replicated"};
      result.push_back(primitive("op-trans", selector,
                                 {dim, field("parts", split.parts), field("axis", split.axis)}));
      if (split.uneven) result.back().fields.push_back({"uneven", Json(true), "uneven"});
      if (split.inner) result.back().fields.push_back({"inner", Json(true), "inner"});
    }
  }
  return result;
}

}  // namespace stratagem::strategies
