// {"op-trans": SELECTOR of operators, "recompute": true}: those of one segment run again as one
// group; with "segments": k those of k segments, which follow each other; with "results": "dropped"
// nothing is kept of what they compute for other gradients of the segment.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {

void read_recompute(PlanBuilder& builder, const JsonReader& reader) {
  if (!reader.at("recompute").boolean()) reader.at("recompute").fail("true");
  const auto results = reader.find("results");
  const bool drops = results && results->one_of({"kept", "dropped"}) == "dropped";
  std::map<int, std::vector<model::OpId>> groups;  // by segment
  for (const model::OpId op : builder.operators(reader.at("op-trans")))
    groups[builder.plan().graph().operators[op].segment].push_back(op);
  int together = 1;
  if (const auto segments = reader.find("segments")) {
    together = static_cast<int>(segments->between(1, 1'000'000));
    if (groups.size() % together != 0) {
      segments->fail("a divisor of the number of segments that are named",
                     std::to_string(together) + " for " + std::to_string(groups.size()));
    }
  }
  std::vector<model::OpId> group;
  int in_group = 0;
  for (const auto& [segment, ops] : groups) {
    group.insert(group.end(), ops.begin(), ops.end());
    if (++in_group % together == 0) builder.plan().recompute(std::exchange(group, {}), drops);
  }
}

namespace {

Primitive again(const Plan& plan, const std::vector<model::OpId>& ops) {
  return primitive("op-trans", selector_of_operators(plan.graph(), ops),
                   {{"recompute", Json(true), "recompute"}});
}

/// Groups of equally many segments are one primitive: in the order of segments they follow each
/// other.
std::vector<Primitive> write_together(const Plan& plan) {
  std::map<int, std::vector<model::OpId>> groups;  // by number of segments
  for (const std::vector<model::OpId>& group : plan.recomputed()) {
    const auto [first, last] = segment_range(plan.graph(), group);
    if (first == last) continue;
    std::vector<model::OpId>& all = groups[last - first + 1];
    all.insert(all.end(), group.begin(), group.end());
  }
  std::vector<Primitive> result;
  for (const auto& [segments, ops] : groups) {
    result.push_back(again(plan, ops));
    result.back().fields.push_back(field("segments", segments));
  }
  return result;
}

}  // namespace

/// Groups in several segments that consist of operators of the same names are one primitive.
std::vector<Primitive> write_recompute(const Plan& plan) {
  const model::Graph& graph = plan.graph();
  using Names = std::pair<bool, std::set<std::string>>;  // are results dropped, and of operators
  std::vector<std::pair<Names, std::vector<model::OpId>>> alike;
  std::map<Names, std::set<int>> segments_of;
  for (std::size_t number = 0; number < plan.recomputed().size(); ++number) {
    const std::vector<model::OpId>& group = plan.recomputed()[number];
    const auto [first, last] = segment_range(graph, group);
    if (first != last) continue;
    Names within{plan.drops_results(number), {}};
    for (const model::OpId op : group)
      within.second.insert(graph.operators[op].name.substr(graph.segments[first].name.size()));
    const bool fresh = segments_of[within].insert(first).second;
    auto same = std::ranges::find_if(alike, [&](const auto& one) { return one.first == within; });
    if (same == alike.end() || !fresh) same = alike.insert(alike.end(), {within, {}});
    same->second.insert(same->second.end(), group.begin(), group.end());
  }
  std::vector<Primitive> result = write_together(plan);
  for (const auto& [within, ops] : alike) {
    result.push_back(again(plan, ops));
    if (within.first) result.back().fields.push_back(field("results", "dropped"));
  }
  return result;
}

}  // namespace stratagem::strategies
