// Errors by group, as text and as JSON.
#include "calibrate/fresh_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/fit/cross_validation.hpp"

namespace stratagem::calibrate {
namespace {

double median_spread(const FreshCheck& check, const std::string& group) {
  std::vector<double> spreads;
  for (const FreshShape& shape : check.shapes)
    if (shape.group == group) spreads.push_back(shape.spread);
  std::ranges::sort(spreads);
  return spreads.at(spreads.size() / 2);
}

Json json(const GroupErrors& group) {
  return Json::object()
      .set("group", group.group)
      .set("shapes", static_cast<std::int64_t>(group.errors.points))
      .set("median", group.errors.median)
      .set("p90", group.errors.p90)
      .set("worst", group.errors.worst)
      .set("spread", group.spread)
      .set("met", group.met);
}

}  // namespace

std::vector<GroupErrors> errors_by_group(const FreshCheck& check) {
  std::vector<GroupErrors> groups;
  for (const FreshShape& shape : check.shapes) {
    if (std::ranges::find(groups, shape.group, &GroupErrors::group) != groups.end()) continue;
    std::vector<double> ratios;
    for (const FreshShape& other : check.shapes)
      if (other.group == shape.group) ratios.push_back(other.predicted / other.measured);
    const cost::Errors errors = errors_of(ratios);
    groups.push_back({.group = shape.group,
                      .errors = errors,
                      .spread = median_spread(check, shape.group),
                      .met = errors.median <= check.limit});
  }
  return groups;
}

std::string other_ranks(const FreshCheck& check) {
  const std::vector<int>& then = check.profile_busy_ranks;
  if (then.empty() || (then.size() == 1 && then.front() == check.busy_ranks)) return "";
  const auto busy = [](int ranks) {
    return fmt::format("{} rank{} busy", ranks, ranks == 1 ? "" : "s");
  };
  std::string before;
  for (const int ranks : then) before += (before.empty() ? "" : " and ") + busy(ranks);
  return fmt::format(
      "Checked with {}, measured with {}: they share memory and caches, so errors are also those "
      "of another load.\n",
      busy(check.busy_ranks), before);
}

bool met(const FreshCheck& check) {
  return std::ranges::all_of(errors_by_group(check), &GroupErrors::met);
}

std::string describe(const FreshCheck& check) {
  std::string text = fmt::format("{:<44} {:>12} {:>12} {:>8} {:>7}\n", "shape", "predicted",
                                 "measured", "off", "spread");
  for (const FreshShape& shape : check.shapes)
    text += fmt::format("{:<44} {:>12} {:>12} {:>+6.1f} % {:>5.1f} %\n", shape.name,
                        to_text(shape.predicted), to_text(shape.measured),
                        100 * (shape.predicted / shape.measured - 1), 100 * shape.spread);
  text +=
      fmt::format("\n{} of {} on {} rank{}, seed {}: |predicted / measured - 1|\n", check.profile,
                  check.gpu, check.ranks, check.ranks == 1 ? "" : "s", check.seed);
  text += fmt::format("{:<20} {:>7} {:>8} {:>7} {:>7}  {}\n", "", "shapes", "median", "90th",
                      "worst", "spread of times");
  for (const GroupErrors& group : errors_by_group(check))
    text += fmt::format("{:<20} {:>7} {:>6.1f} % {:>5.0f} % {:>5.0f} %  {:.1f} %{}\n", group.group,
                        group.errors.points, 100 * group.errors.median, 100 * group.errors.p90,
                        100 * group.errors.worst, 100 * group.spread,
                        group.met ? "" : fmt::format("  median above {:g} %", 100 * check.limit));
  return text + other_ranks(check);
}

std::string json_of(const FreshCheck& check) {
  Json groups = Json::array(), shapes = Json::array(), then = Json::array();
  for (const int ranks : check.profile_busy_ranks) then.push(ranks);
  for (const GroupErrors& group : errors_by_group(check)) groups.push(json(group));
  for (const FreshShape& shape : check.shapes)
    shapes.push(Json::object()
                    .set("group", shape.group)
                    .set("shape", shape.name)
                    .set("predicted", shape.predicted.value)
                    .set("measured", shape.measured.value)
                    .set("spread", shape.spread));
  return Json::object()
             .set("schema", 1)
             .set("profile", check.profile)
             .set("gpu", check.gpu)
             .set("ranks", check.ranks)
             .set("busy_ranks", check.busy_ranks)
             .set("profile_busy_ranks", then)
             .set("seed", static_cast<std::int64_t>(check.seed))
             .set("limit", check.limit)
             .set("met", met(check))
             .set("groups", groups)
             .set("shapes", shapes)
             .text(2) +
         "\n";
}

}  // namespace stratagem::calibrate
