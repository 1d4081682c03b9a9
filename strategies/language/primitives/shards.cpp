// {"op-trans": "steps, gradients", "over": ["data"]}: shards of what belongs to weights, and
// {"op-trans": "checkpoints", "over": ["tensor"]} of the inputs of what runs again.
#include <algorithm>
#include <iterator>

#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// As WeightShards::Of counts them.
const std::vector<std::string> subjects = {"nothing", "steps", "steps, gradients",
                                           "steps, gradients, parameters"};

std::vector<std::string> read_axes(const PlanBuilder& builder, const JsonReader& reader) {
  std::vector<std::string> axes;
  for (const JsonReader& axis : reader.elements()) {
    const std::string name = axis.text();
    if (!builder.has_axis(name)) axis.fail("an axis that an op-trans before has made", name);
    if (std::ranges::count(axes, name) > 0) axis.fail("each axis once", name);
    axes.push_back(name);
  }
  return axes;
}

Primitive written(const std::string& subject, const std::vector<std::string>& axes) {
  std::string text = "over";
  Json list = Json::array();
  for (const std::string& axis : axes) {
    text += " " + axis;
    list.push(axis);
  }
  return primitive("op-trans", subject, {{"over", list, text}});
}

}  // namespace

void read_shards(PlanBuilder& builder, const JsonReader& reader) {
  std::vector<std::string> known(subjects.begin() + 1, subjects.end());
  known.emplace_back("checkpoints");
  const std::string subject = reader.at("op-trans").one_of(known);
  if (subject == "checkpoints") {
    std::vector<std::string>& axes = builder.plan().checkpoint_axes;
    if (!axes.empty()) reader.fail("one primitive for all checkpoints");
    axes = read_axes(builder, reader.at("over"));
    if (axes.empty()) reader.at("over").fail("an axis at least");
    return;
  }
  WeightShards& shards = builder.plan().shards;
  if (shards.of != WeightShards::Of::nothing) reader.fail("one primitive for all shards");
  shards.of = static_cast<WeightShards::Of>(
      std::distance(subjects.begin(), std::ranges::find(subjects, subject)));
  shards.axes = read_axes(builder, reader.at("over"));
  const bool gathers = shards.of == WeightShards::Of::parameters;
  if (shards.axes.empty() && !gathers) reader.at("over").fail("an axis at least");
  if (const auto prefetch = reader.find("prefetch"))
    shards.prefetch = static_cast<int>(prefetch->between(0, 1'000));
  if (const auto below = reader.find("whole below")) {
    if (!gathers) below->fail("parameters among what is divided");
    shards.whole_below = static_cast<int>(below->between(0, 1'000'000'000));
  }
}

std::vector<Primitive> write_shards(const Plan& plan) {
  std::vector<Primitive> result;
  if (!plan.checkpoint_axes.empty()) result.push_back(written("checkpoints", plan.checkpoint_axes));
  const WeightShards& shards = plan.shards;
  if (shards.of == WeightShards::Of::nothing) return result;
  result.push_back(written(subjects[static_cast<int>(shards.of)], shards.axes));
  if (shards.prefetch) result.back().fields.push_back(field("prefetch", *shards.prefetch));
  if (shards.whole_below > 0)
    result.back().fields.push_back(field("whole below", shards.whole_below));
  return result;
}

}  // namespace stratagem::strategies
