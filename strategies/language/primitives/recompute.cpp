// {"op-trans": SELECTOR of operators, "recompute": true}: those of one segment run again as one
// group; with "segments": k those of k segments, which follow each other.
#include <map>
#include <set>
#include <utility>

#include "strategies/language/primitives/all.hpp"
#include "strategies/language/summary.hpp"

namespace stratagem::strategies {

void read_recompute(PlanBuilder& builder, const JsonReader& reader) {
  if (!reader.at("recompute").boolean()) reader.at("recompute").fail("true");
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
    if (++in_group % together == 0) builder.plan().recompute(std::exchange(group, {}));
  }
}

namespace {

/// Groups of equally many segments are one primitive: in the order of segments they follow each
/// other.
std::vector<Primitive> write_together(const Plan& plan, const std::vector<std::string>& all) {
  std::map<int, std::vector<std::string>> names;  // by number of segments
  for (const std::vector<model::OpId>& group : plan.recomputed()) {
    const auto [first, last] = segment_range(plan.graph(), group);
    if (first == last) continue;
    for (const model::OpId op : group)
      names[last - first + 1].push_back(plan.graph().operators[op].name);
  }
  std::vector<Primitive> result;
  for (const auto& [segments, chosen] : names) {
    result.push_back(
        primitive("op-trans", summarize(chosen, all),
                  {{"recompute", Json(true), "recompute"}, field("segments", segments)}));
  }
  return result;
}

}  // namespace

/// Groups in several segments that consist of operators of the same names are one primitive.
std::vector<Primitive> write_recompute(const Plan& plan) {
  const model::Graph& graph = plan.graph();
  std::vector<std::string> all;
  for (const model::OpId op : plan.operators()) all.push_back(graph.operators[op].name);
  std::vector<std::pair<std::set<std::string>, std::vector<std::string>>> alike;
  std::map<std::set<std::string>, std::set<int>> segments_of;
  for (const std::vector<model::OpId>& group : plan.recomputed()) {
    const auto [first, last] = segment_range(graph, group);
    if (first != last) continue;
    const model::Segment& segment = graph.segments[graph.operators[group.front()].segment];
    std::set<std::string> within;
    std::vector<std::string> names;
    for (const model::OpId op : group) {
      names.push_back(graph.operators[op].name);
      within.insert(names.back().substr(segment.name.size()));
    }
    const bool fresh = segments_of[within].insert(graph.operators[group.front()].segment).second;
    auto same = alike.begin();
    while (same != alike.end() && same->first != within) ++same;
    if (same == alike.end() || !fresh) {
      alike.emplace_back(std::move(within), std::move(names));
    } else {
      same->second.insert(same->second.end(), names.begin(), names.end());
    }
  }
  std::vector<Primitive> result = write_together(plan, all);
  for (const auto& [within, names] : alike)
    result.push_back(
        primitive("op-trans", summarize(names, all), {{"recompute", Json(true), "recompute"}}));
  return result;
}

}  // namespace stratagem::strategies
