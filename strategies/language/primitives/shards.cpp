// {"op-trans": "steps, gradients", "over": ["data"]}: shards of what belongs to weights.
#include <algorithm>
#include <iterator>

#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// As WeightShards::Of counts them.
const std::vector<std::string> subjects = {"nothing", "steps", "steps, gradients",
                                           "steps, gradients, parameters"};

}  // namespace

void read_shards(PlanBuilder& builder, const JsonReader& reader) {
  const std::vector<std::string> known(subjects.begin() + 1, subjects.end());
  const auto found = std::ranges::find(subjects, reader.at("op-trans").one_of(known));
  WeightShards& shards = builder.plan().shards;
  if (!shards.axes.empty()) reader.fail("one primitive for all shards");
  shards.of = static_cast<WeightShards::Of>(std::distance(subjects.begin(), found));
  for (const JsonReader& axis : reader.at("over").elements()) {
    const std::string name = axis.text();
    if (!builder.has_axis(name)) axis.fail("an axis that an op-trans before has made", name);
    if (std::ranges::count(shards.axes, name) > 0) axis.fail("each axis once", name);
    shards.axes.push_back(name);
  }
  if (shards.axes.empty()) reader.at("over").fail("an axis at least");
  if (const auto prefetch = reader.find("prefetch")) {
    if (!shards.divides(WeightShards::Of::parameters))
      prefetch->fail("parameters among what is divided");
    shards.prefetch = static_cast<int>(prefetch->between(0, 1'000));
  }
}

std::vector<Primitive> write_shards(const Plan& plan) {
  const WeightShards& shards = plan.shards;
  if (shards.of == WeightShards::Of::nothing) return {};
  std::string text = "over";
  Json axes = Json::array();
  for (const std::string& axis : shards.axes) {
    text += " " + axis;
    axes.push(axis);
  }
  Primitive result =
      primitive("op-trans", subjects[static_cast<int>(shards.of)], {{"over", axes, text}});
  if (shards.divides(WeightShards::Of::parameters))
    result.fields.push_back(field("prefetch", shards.prefetch));
  return {result};
}

}  // namespace stratagem::strategies
