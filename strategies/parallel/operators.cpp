// Flexible tensor parallelism: the user says what each operator divides over the tensor ranks.
#include <algorithm>

#include "base/input_error.hpp"
#include "base/pattern.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/named_dimensions.hpp"

namespace stratagem::strategies {
namespace {

/// Refuses entries that say nothing about this model; tensor_parallel applies the others. Any
/// choice is a valid plan: the lowering finds the transitions between neighbours. Source: Jia et
/// al., FlexFlow, MLSys 2019, and Wang et al., Tofu, EuroSys 2019, both search such choices.
void check_names(Plan& plan, const Options& options) {
  const model::Graph& graph = plan.graph();
  const std::vector<model::OpId> ops = plan.operators();
  for (const auto& entry : options.division.operators) {
    const bool any = std::ranges::any_of(
        ops, [&](model::OpId op) { return applies(entry, graph.operators[op]); });
    if (any) continue;
    const std::string divides = entry.second.empty() ? "" : " that can divide " + entry.second;
    std::vector<std::string> names;
    for (const model::OpId op : ops) {
      const model::Operator& one = graph.operators[op];
      if (applies({"*", entry.second}, one)) names.push_back(one.name);
    }
    throw InputError(
        "", "", "a pattern of operators' names" + divides + fitting_patterns(entry.first, names),
        entry.first);
  }
}

/// {"pattern": "dimension"}
Format<NamedDimensions> dimensions_by_pattern() {
  return {{Json::object().set("type", "object").set("additionalProperties", text().schema),
           "`{pattern: dimension, ...}`"},
          [](const JsonReader& reader) {
            NamedDimensions all;
            for (const std::string& pattern : reader.keys())
              all.emplace_back(pattern, reader.at(pattern).text());
            return all;
          }};
}

}  // namespace

Strategy operators() {
  return {
      {{"operators", within(&Options::division, &LayerDivision::operators), dimensions_by_pattern(),
        "flexible tensor parallelism: by pattern of operators' names (`*` is any text) the "
        "dimension of their annotation that they divide over the tensor ranks, `\"\"` "
        "replicates them; the last entry wins",
        "{}"}},
      &check_names};
}

}  // namespace stratagem::strategies
