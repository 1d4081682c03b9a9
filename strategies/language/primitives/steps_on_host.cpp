// {"op-assign": "steps", "to": "host"}: optimizer steps on the processors of the server.
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

void read_steps_on_host(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-assign").one_of({"steps"}));
  static_cast<void>(reader.at("to").one_of({"host"}));
  if (builder.plan().steps_on_host) reader.fail("one primitive for all steps");
  builder.plan().steps_on_host = true;
}

std::vector<Primitive> write_steps_on_host(const Plan& plan) {
  if (!plan.steps_on_host) return {};
  return {primitive("op-assign", "steps", {field("to", "host")})};
}

}  // namespace stratagem::strategies
