// {"op-trans": "micro-batches", "tokens": [256, 256]}: every micro-batch in slices of its tokens.
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

void read_token_slices(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-trans").one_of({"micro-batches"}));
  if (!builder.plan().token_slices.empty()) reader.fail("one such op-trans");
  for (const JsonReader& tokens : reader.at("tokens").elements())
    builder.plan().token_slices.push_back(tokens.at_least(1));
  if (builder.plan().token_slices.empty()) reader.at("tokens").fail("at least one slice");
}

std::vector<Primitive> write_token_slices(const Plan& plan) {
  if (plan.token_slices.empty()) return {};
  return {primitive("op-trans", "micro-batches", {list_field("tokens", plan.token_slices)})};
}

}  // namespace stratagem::strategies
