// Communicators from grids.
#include "lowering/stages/groups.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::Grid;

Groups::Groups(program::Program& program) : program_(program) {
  for (const Grid& grid : program.grids) {
    if (grid.listed.empty() && std::ranges::find(grids_, grid) == grids_.end())
      grids_.push_back(grid);
  }
  // A family is a set of grids with equal axes of which no two overlap.
  std::vector<std::pair<const std::vector<placement::Axis>*, std::set<int>>> families;
  for (const Grid& grid : grids_) {
    const std::vector<int> devices = grid.devices();
    std::size_t family = 0;
    for (; family < families.size(); ++family) {
      const auto& [axes, taken] = families[family];
      const auto free = [&taken = taken](int device) { return !taken.contains(device); };
      if (*axes == grid.axes && std::ranges::all_of(devices, free)) break;
    }
    if (family == families.size()) families.emplace_back(&grid.axes, std::set<int>{});
    families[family].second.insert(devices.begin(), devices.end());
    family_.push_back(static_cast<int>(family));
  }
}

int Groups::family(const Grid& grid) const {
  const auto found = std::ranges::find(grids_, grid);
  expects(found != grids_.end(), "groups are asked for on the grids of stages");
  return family_[found - grids_.begin()];
}

int Groups::new_group() {
  for (program::Device& device : program_.devices) device.groups.push_back(-1);
  return count_++;
}

void Groups::bind(int group, const std::vector<int>& ranks) {
  const auto id = static_cast<int>(program_.communicators.size());
  program_.communicators.push_back({ranks});
  for (const int rank : ranks) program_.devices[rank].groups[group] = id;
}

void Groups::bind_along(int group, const Grid& grid, const std::vector<int>& axes) {
  std::map<std::vector<int>, std::vector<int>> members;  // by the coordinates along the other axes
  for (int i = 0; i < grid.count(); ++i) {
    std::vector<int> others = grid.coordinates(i);
    const int device = grid.device(others);
    for (const int axis : axes) others[axis] = 0;
    members[others].push_back(device);
  }
  for (const auto& [others, ranks] : members) bind(group, ranks);
}

int Groups::along(const Grid& grid, const std::vector<int>& axes, int purpose) {
  const int wanted = family(grid);
  std::vector<int> key = {0, purpose, wanted};
  key.insert(key.end(), axes.begin(), axes.end());
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (std::size_t g = 0; g < grids_.size(); ++g) {
    if (family_[g] == wanted) bind_along(group, grids_[g], axes);
  }
  return group;
}

int Groups::of(const std::vector<std::vector<int>>& ranks, int purpose) {
  std::vector<int> key = {2, purpose};
  for (const std::vector<int>& one : ranks) {
    key.push_back(static_cast<int>(one.size()));
    key.insert(key.end(), one.begin(), one.end());
  }
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (const std::vector<int>& one : ranks) bind(group, one);
  return group;
}

int Groups::ranks_in(int group) const {
  for (const program::Device& device : program_.devices) {
    if (group < static_cast<int>(device.groups.size()) && device.groups[group] >= 0)
      return static_cast<int>(program_.communicators[device.groups[group]].ranks.size());
  }
  return 0;
}

int Groups::alone() {
  std::vector<std::vector<int>> ranks;
  for (std::size_t device = 0; device < program_.devices.size(); ++device)
    ranks.push_back({static_cast<int>(device)});
  return of(ranks, -5);
}

int Groups::across(const std::vector<Grid>& grids, int purpose) {
  std::vector<int> key = {1, purpose};
  for (const Grid& grid : grids) key.push_back(grid.first_device);
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (int i = 0; i < grids.front().count(); ++i) {
    std::vector<int> ranks;
    ranks.reserve(grids.size());
    for (const Grid& grid : grids) ranks.push_back(grid.device(grid.coordinates(i)));
    bind(group, ranks);
  }
  return group;
}

}  // namespace stratagem::lowering
