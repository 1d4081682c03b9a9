// Remembers which primitive said what, so that a contradiction is told where it was written.
#include "strategies/language/plan_builder.hpp"

#include <algorithm>
#include <set>

#include "base/input_error.hpp"
#include "strategies/language/colocate.hpp"
#include "strategies/language/plan_devices.hpp"

namespace stratagem::strategies {

PlanBuilder::PlanBuilder(const model::Graph& graph, int micro_batches)
    : given_(graph), plan_(graph), levels_(graph.operators.size()) {
  plan_.micro_batches = micro_batches;
}

std::vector<model::OpId> PlanBuilder::operators(
    const JsonReader& selector,
    const std::vector<std::pair<std::string, std::int64_t>>& values) const {
  return select_operators(selector.text(), {plan_.graph(), plan_.stages, values}, selector.path());
}

std::vector<model::OpId> PlanBuilder::given_operators(const JsonReader& selector) const {
  return select_operators(selector.text(), {given_, plan_.stages, {}}, selector.path());
}

std::vector<int> PlanBuilder::segments(const JsonReader& selector) const {
  return select_segments(selector.text(), {plan_.graph(), plan_.stages, {}}, selector.path());
}

const std::string& PlanBuilder::name(model::OpId op) const {
  return plan_.graph().operators[op].name;
}

void PlanBuilder::colocate(const std::vector<model::Division>& divisions, const std::string& path) {
  if (plan_.speaks_of_operators() || !whole_.empty()) {
    throw InputError("", path, "parts on one device before all that is said of operators",
                     "it behind other primitives");
  }
  std::set<model::OpId> taken;
  for (const model::Division& division : divisions_)
    taken.insert(division.run.operators.begin(), division.run.operators.end());
  for (const model::Division& division : divisions) {
    for (const model::OpId op : division.run.operators) {
      if (taken.insert(op).second) continue;
      throw InputError("", path, "operators in parts on one device once",
                       given_.operators[op].name + " twice");
    }
  }
  divisions_.insert(divisions_.end(), divisions.begin(), divisions.end());
  strategies::colocate(plan_, given_, divisions_);
  levels_.assign(plan_.graph().operators.size(), {});
}

void PlanBuilder::split(model::OpId op, const Split& split, const std::string& axis,
                        const std::string& path) {
  if (levels_[op].contains(axis)) {
    throw InputError("", path, "an axis along which " + name(op) + " is not split yet",
                     "\"" + axis + "\", split by " + levels_[op].at(axis).split_path);
  }
  const Parts parts = plan_.trans(op, split);
  levels_[op][axis] = {.parts = parts, .size = split.parts, .split_path = path, .assign_path = ""};
}

bool PlanBuilder::has_axis(const std::string& axis) const {
  return std::ranges::any_of(levels_, [&](const auto& levels) { return levels.contains(axis); });
}

void PlanBuilder::assign(model::OpId op, const std::string& axis, int stride,
                         const std::string& path) {
  const auto level = levels_[op].find(axis);
  if (level == levels_[op].end()) {
    throw InputError("", path, "an axis along which an op-trans has split " + name(op),
                     "\"" + axis + "\"");
  }
  if (!level->second.assign_path.empty()) {
    throw InputError("", path, "one op-assign of axis \"" + axis + "\" of " + name(op),
                     "another one in " + level->second.assign_path);
  }
  level->second.assign_path = path;
  plan_.assign(level->second.parts, {.name = axis, .size = level->second.size, .stride = stride});
}

void PlanBuilder::claim(model::OpId op, int copy, const std::string& path) {
  if (copy >= plan_.copies_of(op)) {
    throw InputError(
        "", path,
        "a copy of " + name(op) + ", from 0 to " + std::to_string(plan_.copies_of(op) - 1),
        "copy " + std::to_string(copy));
  }
  const auto [other, fresh] = whole_.emplace(std::pair(op, copy), path);
  if (!fresh) {
    throw InputError("", path, "one op-assign of " + name(op) + " to a device",
                     "another one in " + other->second);
  }
}

void PlanBuilder::assign(model::OpId op, int first_device, int copy, const std::string& path) {
  claim(op, copy, path);
  plan_.assign(op, first_device, copy);
}

void PlanBuilder::assign(model::OpId op, const std::vector<int>& devices, int copy,
                         const std::string& path) {
  claim(op, copy, path);
  std::size_t parts = 1;
  for (auto& [axis, level] : levels_[op]) {
    if (!level.assign_path.empty() && copy == 0) {
      throw InputError("", path, "one op-assign of axis \"" + axis + "\" of " + name(op),
                       "another one in " + level.assign_path);
    }
    level.assign_path = path;
    parts *= static_cast<std::size_t>(level.size);
  }
  if (devices.size() != parts) {
    throw InputError("", path,
                     "a device for each of the " + std::to_string(parts) + " parts of " + name(op),
                     std::to_string(devices.size()));
  }
  plan_.assign(op, devices, copy);
}

void PlanBuilder::check_assigned() const {
  for (const model::OpId op : plan_.operators()) check_levels(op);
  check_devices();
}

void PlanBuilder::check_levels(model::OpId op) const {
  std::string last;
  for (const auto& [axis, level] : levels_[op]) {
    if (level.assign_path.empty()) {
      throw InputError(
          "", level.split_path,
          "an op-assign of axis \"" + axis + "\" of " + name(op) + ", whose parts stand nowhere",
          "none");
    }
    last = level.assign_path;
  }
  const std::vector<int> devices = devices_of(plan_.placement(op), 0);
  const auto twice = std::ranges::adjacent_find(devices);
  if (twice != devices.end()) {
    throw InputError("", last, "the parts of " + name(op) + " on devices of their own",
                     "two on device " + std::to_string(*twice));
  }
}

/// A plan that names no device at all begins at device 0; one that names some must name all.
void PlanBuilder::check_devices() const {
  if (whole_.empty()) return;
  for (const model::OpId op : plan_.operators()) {
    for (int copy = 0; copy < plan_.copies_of(op); ++copy) {
      if (whole_.contains({op, copy})) continue;
      const std::string which =
          plan_.copies_of(op) > 1 ? "copy " + std::to_string(copy) + " of " : "";
      throw InputError("", "/primitives", "an op-assign of " + which + name(op) + " to a device",
                       "none");
    }
  }
}

}  // namespace stratagem::strategies
