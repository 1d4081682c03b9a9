// {"op-trans": SELECTOR of segments, "recompute": true}: their forward operators run again.
#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {

void read_recompute(PlanBuilder& builder, const JsonReader& reader) {
  if (!reader.at("recompute").boolean()) reader.at("recompute").fail("true");
  for (const int segment : builder.segments(reader.at("op-trans")))
    builder.plan().recompute(segment);
}

std::vector<Primitive> write_recompute(const Plan& plan) {
  std::vector<std::string> all;
  std::vector<std::string> again;
  for (const model::Segment& segment : plan.graph().segments) {
    const auto id = static_cast<int>(all.size());
    all.push_back(segment.name);
    if (plan.recomputes(id)) again.push_back(segment.name);
  }
  if (again.empty()) return {};
  return {primitive("op-trans", summarize(again, all), {{"recompute", Json(true), "recompute"}})};
}

}  // namespace stratagem::strategies
