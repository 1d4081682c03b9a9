// {"op-trans": "layers.[0-7]", "swap": "host", "prefetch": 1}: what segments keep waits on the host.
#include <algorithm>

#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {

void read_swap(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("swap").one_of({"host"}));
  Swap& swap = builder.plan().swap;
  if (!swap.segments.empty()) reader.fail("one primitive for all segments that are swapped");
  swap.segments = builder.segments(reader.at("op-trans"));
  std::ranges::sort(swap.segments);
  if (const auto prefetch = reader.find("prefetch"))
    swap.prefetch = static_cast<int>(prefetch->between(0, 1'000));
}

std::vector<Primitive> write_swaps(const Plan& plan) {
  if (plan.swap.segments.empty()) return {};
  std::vector<std::string> all;
  for (const model::Segment& segment : plan.graph().segments) all.push_back(segment.name);
  std::vector<std::string> names;
  for (const int segment : plan.swap.segments) names.push_back(all[segment]);
  return {primitive("op-trans", summarize(names, all),
                    {field("swap", "host"), field("prefetch", plan.swap.prefetch)})};
}

}  // namespace stratagem::strategies
