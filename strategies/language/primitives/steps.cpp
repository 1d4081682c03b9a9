// {"op-trans": "steps", "over": ["data"]}: each of the ranks along these axes steps a part;
// {"op-assign": "steps", "to": "host", "delayed": false}: on the processors of the server.
#include <algorithm>

#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

std::vector<std::string> read_axis_names(const PlanBuilder& builder, const JsonReader& list) {
  std::vector<std::string> axes;
  for (const JsonReader& axis : list.elements()) {
    const std::string name = axis.text();
    if (!builder.has_axis(name)) axis.fail("an axis that an op-trans before has made", name);
    if (std::ranges::count(axes, name) > 0) axis.fail("each axis once", name);
    axes.push_back(name);
  }
  return axes;
}

void read_divided_steps(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-trans").one_of({"steps"}));
  Steps& steps = builder.plan().steps;
  if (!steps.divided.empty()) reader.fail("one primitive that divides all steps");
  steps.divided = read_axis_names(builder, reader.at("over"));
  if (steps.divided.empty()) reader.at("over").fail("an axis at least");
}

std::vector<Primitive> write_divided_steps(const Plan& plan) {
  if (plan.steps.divided.empty()) return {};
  return {primitive("op-trans", "steps", {list_field("over", plan.steps.divided)})};
}

void read_steps_on_host(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-assign").one_of({"steps"}));
  static_cast<void>(reader.at("to").one_of({"host"}));
  Steps& steps = builder.plan().steps;
  if (steps.on_host) reader.fail("one primitive that assigns all steps");
  steps.on_host = true;
  steps.said = reader.path();
  if (const auto delayed = reader.find("delayed")) steps.delayed = delayed->boolean();
}

std::vector<Primitive> write_steps_on_host(const Plan& plan) {
  if (!plan.steps.on_host) return {};
  Primitive steps = primitive("op-assign", "steps", {field("to", "host")});
  if (plan.steps.delayed) steps.fields.push_back({"delayed", Json(true), "delayed"});
  return {steps};
}

}  // namespace stratagem::strategies
