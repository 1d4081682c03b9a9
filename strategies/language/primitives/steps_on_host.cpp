// {"op-assign": "steps", "to": "host", "delayed": false}: optimizer steps on the processors of the
// server; {"op-assign": "states", "to": "drives"}: what they keep on its drives; {"op-assign":
// "parameters", "to": "host", "prefetch": 1}: beside the steps the parameters, or "to": "drives".
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

void read_parameters_on_host(Plan& plan, const JsonReader& reader) {
  if (plan.parameters_on_host) reader.fail("one primitive for all parameters");
  plan.parameters_on_host = true;
  plan.parameters_on_drives = reader.at("to").one_of({"host", "drives"}) == "drives";
  const auto prefetch = reader.find("prefetch");
  if (!prefetch) return;
  if (plan.shards.divides(WeightShards::Of::parameters))
    prefetch->fail("prefetch beside the shards of the parameters, not here");
  plan.shards.prefetch = static_cast<int>(prefetch->between(0, 1'000));
}

void read_states_on_drives(Plan& plan, const JsonReader& reader) {
  static_cast<void>(reader.at("to").one_of({"drives"}));
  if (plan.states_on_drives) reader.fail("one primitive for all states");
  plan.states_on_drives = true;
}

}  // namespace

void read_steps_on_host(PlanBuilder& builder, const JsonReader& reader) {
  Plan& plan = builder.plan();
  const std::string what = reader.at("op-assign").one_of({"steps", "states", "parameters"});
  if (what == "parameters") return read_parameters_on_host(plan, reader);
  if (what == "states") return read_states_on_drives(plan, reader);
  static_cast<void>(reader.at("to").one_of({"host"}));
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
  if (plan.states_on_drives)
    result.push_back(primitive("op-assign", "states", {field("to", "drives")}));
  if (plan.parameters_on_host) {
    const char* place = plan.parameters_on_drives ? "drives" : "host";
    result.push_back(primitive("op-assign", "parameters", {field("to", place)}));
    if (!plan.shards.divides(WeightShards::Of::parameters))
      result.back().fields.push_back(field("prefetch", plan.shards.prefetch.value_or(0)));
  }
  return result;
}

}  // namespace stratagem::strategies
