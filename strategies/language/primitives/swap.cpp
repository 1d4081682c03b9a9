// {"op-trans": "layers.[0-7]", "swap": "host", "prefetch": 1}: what segments keep waits on the
// host, or, with "swap": 3, on the devices of stage 3.
#include <algorithm>
#include <map>

#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {
namespace {

constexpr int host = -1;

int place_of(const Swap& swap, int segment) {
  const auto found = swap.peers.find(segment);
  return found == swap.peers.end() ? host : found->second;
}

}  // namespace

void read_swap(PlanBuilder& builder, const JsonReader& reader) {
  const JsonReader to = reader.at("swap");
  const auto stages = static_cast<int>(builder.plan().stages.size());
  int place = host;
  if (to.is_number()) {
    place = static_cast<int>(to.between(0, stages - 1));
  } else {
    static_cast<void>(to.one_of({"host"}));
  }
  Swap& swap = builder.plan().swap;
  for (const int segment : swap.segments) {
    if (place_of(swap, segment) == place)
      reader.fail("one primitive for all segments that are swapped to one place");
  }
  const std::vector<int> segments = builder.segments(reader.at("op-trans"));
  for (const int segment : segments) {
    if (std::ranges::count(swap.segments, segment) > 0)
      reader.at("op-trans").fail("segments that are swapped to one place");
    if (place != host) swap.peers[segment] = place;
  }
  int prefetch = 0;
  if (const auto ahead = reader.find("prefetch"))
    prefetch = static_cast<int>(ahead->between(0, 1'000));
  if (!swap.segments.empty() && prefetch != swap.prefetch)
    reader.fail("the same prefetch for all segments that are swapped", std::to_string(prefetch));
  swap.prefetch = prefetch;
  swap.segments.insert(swap.segments.end(), segments.begin(), segments.end());
  std::ranges::sort(swap.segments);
}

std::vector<Primitive> write_swaps(const Plan& plan) {
  std::vector<std::string> all;
  for (const model::Segment& segment : plan.graph().segments) all.push_back(segment.name);
  std::map<int, std::vector<std::string>> names;  // by place
  for (const int segment : plan.swap.segments)
    names[place_of(plan.swap, segment)].push_back(all[segment]);
  std::vector<Primitive> result;
  for (const auto& [place, chosen] : names) {
    const Field to = place == host
                         ? field("swap", "host")
                         : Field{"swap", Json(place), "swap to stage " + std::to_string(place)};
    result.push_back(
        primitive("op-trans", summarize(chosen, all), {to, field("prefetch", plan.swap.prefetch)}));
  }
  return result;
}

}  // namespace stratagem::strategies
