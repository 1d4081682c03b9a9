// {"op-trans": SELECTOR of operators, "recompute": true}: those of one segment run again as one group.
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
  for (auto& [segment, group] : groups) builder.plan().recompute(std::move(group));
}

/// Groups of several segments that consist of operators of the same names are one primitive.
std::vector<Primitive> write_recompute(const Plan& plan) {
  const model::Graph& graph = plan.graph();
  std::vector<std::string> all;
  for (const model::OpId op : plan.operators()) all.push_back(graph.operators[op].name);
  std::vector<std::pair<std::set<std::string>, std::vector<std::string>>> alike;
  std::map<std::set<std::string>, std::set<int>> segments_of;
  for (const std::vector<model::OpId>& group : plan.recomputed()) {
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
  std::vector<Primitive> result;
  for (const auto& [within, names] : alike)
    result.push_back(
        primitive("op-trans", summarize(names, all), {{"recompute", Json(true), "recompute"}}));
  return result;
}

}  // namespace stratagem::strategies
