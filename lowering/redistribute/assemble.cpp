// Cuts, sums and concatenates.
#include "lowering/redistribute/assemble.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace stratagem::lowering {

using placement::Mask;

namespace {

bool share_elements(const Mask& a, const Mask& b) {
  Mask full = b;
  full.value = a.value;
  return overlap(a, full);
}

/// Do two parts see some common elements, but not the same ones?
bool need_cuts(const std::vector<Mask>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (parts[i].ranges != parts[j].ranges && share_elements(parts[i], parts[j])) return true;
    }
  }
  return false;
}

/// A mask cut at every bound that lies inside it.
std::vector<Mask> cells_of(const Mask& mask, const std::vector<std::set<std::int64_t>>& bounds) {
  std::vector<Mask> cells{mask};
  for (std::size_t d = 0; d < bounds.size(); ++d) {
    std::vector<Mask> finer;
    for (const Mask& cell : cells) {
      Mask next = cell;
      for (const std::int64_t bound : bounds[d]) {
        if (bound <= next.ranges[d].begin || bound >= cell.ranges[d].end) continue;
        finer.push_back(next);
        finer.back().ranges[d].end = bound;
        next.ranges[d].begin = bound;
      }
      finer.push_back(next);
    }
    cells = std::move(finer);
  }
  return cells;
}

/// Cuts the partial values where needed; returns all parts after that. Those with the target's
/// value share elements with no other.
std::vector<Mask> cut(int device, const std::vector<Mask>& parts, const Mask& target,
                      std::vector<Share>& cuts) {
  if (!need_cuts(parts)) return parts;
  std::vector<std::set<std::int64_t>> bounds(target.ranges.size());
  for (const Mask& part : parts) {
    if (part.value == target.value) continue;
    for (std::size_t d = 0; d < bounds.size(); ++d)
      bounds[d].insert({part.ranges[d].begin, part.ranges[d].end});
  }
  std::vector<Mask> cells;
  for (const Mask& part : parts) {
    if (part.value == target.value) {
      cells.push_back(part);
      continue;
    }
    for (const Mask& cell : cells_of(part, bounds)) {
      cells.push_back(cell);
      if (cell != part) cuts.push_back({device, {part}, cell});
    }
  }
  return cells;
}

}  // namespace

Assembly assemble(int device, const std::vector<Mask>& parts, const Mask& target) {
  Assembly assembly;
  // The partial values of the same elements.
  std::map<std::vector<placement::Range>, std::vector<Mask>> cells;
  for (const Mask& cell : cut(device, parts, target, assembly.cuts))
    cells[cell.ranges].push_back(cell);
  std::vector<Mask> summed;
  for (const auto& [ranges, values] : cells) {
    summed.push_back({ranges, target.value});
    if (values.size() > 1) assembly.sums.push_back({device, values, summed.back()});
  }
  if (summed.size() > 1) assembly.concatenations.push_back({device, summed, target});
  return assembly;
}

std::vector<std::vector<Share>> alone(const std::vector<Share>& shares) {
  std::set<Share> seen;
  std::vector<std::vector<Share>> groups;
  for (const Share& share : shares) {
    if (seen.insert(share).second) groups.push_back({share});
  }
  return groups;
}

std::vector<Step> steps_of(const std::vector<Assembly>& assemblies) {
  std::vector<Step> steps;
  const auto add = [&](StepKind kind, std::vector<Share> Assembly::*part) {
    std::vector<Share> all;
    for (const Assembly& one : assemblies) std::ranges::copy(one.*part, std::back_inserter(all));
    if (!all.empty()) steps.push_back({kind, alone(all)});
  };
  add(StepKind::select, &Assembly::cuts);
  add(StepKind::sum, &Assembly::sums);
  add(StepKind::concatenate, &Assembly::concatenations);
  return steps;
}

}  // namespace stratagem::lowering
