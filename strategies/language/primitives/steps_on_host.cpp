// {"op-assign": "steps", "to": "host", "delayed": false}: optimizer steps on the processors of the
// server; {"op-assign": "parameters", "to": "host", "prefetch": 1}: beside them the parameters.
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

void read_parameters_on_host(Plan& plan, const JsonReader& reader) {
  if (plan.parameters_on_host) reader.fail("one primitive for all parameters");
  plan.parameters_on_host = true;
  const auto prefetch = reader.find("prefetch");
  if (!prefetch) return;
  if (plan.shards.divides(WeightShards::Of::parameters))
    prefetch->fail("prefetch beside the shards of the parameters, not here");
  plan.shards.prefetch = static_cast<int>(prefetch->between(0, 1'000));
}

}  // namespace

void read_steps_on_host(PlanBuilder& builder, const JsonReader& reader) {
  Plan& plan = builder.plan();
  const std::string what = reader.at("op-assign").one_of({"steps", "parameters"});
  static_cast<void>(reader.at("to").one_of({"host"}));
  if (what == "parameters") return read_parameters_on_host(plan, reader);
  if (plan.steps_on_host) reader.fail("one primitive for all steps");
  plan.steps_on_host = true;
  if (const auto delayed = reader.find("delayed")) plan.delayed_update = delayed->boolean();
}

std::vector<Primitive> write_steps_on_host(const Plan& plan) {
  std::vector<Primitive> result;
  if (plan.steps_on_host) {
    result.push_back(primitive("op-assign", "steps", {field("to", "host")}));
    if (plan.delayed_update) result.back().fields.push_back({"delayed", Json(true), "delayed"});
  }
  if (plan.parameters_on_host) {
    result.push_back(primitive("op-assign", "parameters", {field("to", "host")}));
    if (!plan.shards.divides(WeightShards::Of::parameters))
      result.back().fields.push_back(field("prefetch", plan.shards.prefetch));
  }
  return result;
}

}  // namespace stratagem::strategies
