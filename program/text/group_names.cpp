// Goes through devices, and through the groups of each in the order in which it uses them.
#include "program/text/group_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "program/text/names.hpp"

namespace stratagem::program {

std::vector<int> groups_of(const Block& block) {
  std::vector<int> groups;
  for (const Task& task : block.tasks) {
    const auto* collective = std::get_if<Collective>(&task.work);
    if (collective != nullptr && std::ranges::find(groups, collective->group) == groups.end())
      groups.push_back(collective->group);
  }
  return groups;
}

std::vector<std::vector<int>> devices_by_sequence(const Program& program) {
  std::vector<std::vector<int>> devices(program.sequences.size());
  for (std::size_t d = 0; d < program.devices.size(); ++d)
    devices[program.devices[d].sequence].push_back(static_cast<int>(d));
  return devices;
}

GroupNames::GroupNames(const Program& program)
    : program_(program), devices_(devices_by_sequence(program)) {
  find_first_uses();
  name_communicators();
}

void GroupNames::find_first_uses() {
  std::vector<std::vector<int>> of_block;
  for (const Block& block : program_.blocks) of_block.push_back(groups_of(block));
  for (const Sequence& sequence : program_.sequences) {
    std::vector<int>& groups = groups_.emplace_back();
    std::vector<bool> seen(program_.blocks.size(), false);
    for (const StoredCall& call : sequence.calls.stored()) {
      if (seen[call.block]) continue;
      seen[call.block] = true;
      for (const int group : of_block[call.block]) {
        if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
      }
    }
  }
}

void GroupNames::name_communicators() {
  for (const Communicator& communicator : program_.communicators)
    names_.push_back("[" + text_of_ranks(communicator.ranks) + "]");
  std::unordered_map<std::string, int> count;
  for (std::size_t d = 0; d < program_.devices.size(); ++d) {
    const Device& device = program_.devices[d];
    for (const int group : groups_[device.sequence]) {
      if (group < 0 || group >= static_cast<int>(device.groups.size())) continue;
      const int c = device.groups[group];
      if (c < 0 || program_.communicators[c].ranks.front() != static_cast<int>(d)) continue;
      const int number = ++count[names_[c]];
      if (number > 1) names_[c] += fmt::format(" ({})", number);
    }
  }
}

std::string GroupNames::of_device(int device, int group) const {
  const std::vector<int>& groups = program_.devices[device].groups;
  const bool known = group >= 0 && group < static_cast<int>(groups.size()) && groups[group] >= 0;
  return known ? names_[groups[group]] : "none";
}

std::string GroupNames::name(int sequence, int group) const {
  return of_device(devices_[sequence].front(), group);
}

std::vector<std::string> GroupNames::lines(int sequence) const {
  std::vector<std::string> lines;
  for (const int group : groups_[sequence]) {
    std::string line = name(sequence, group) + ":";
    const std::vector<int>& devices = devices_[sequence];
    for (std::size_t first = 0; first < devices.size();) {
      const std::string communicator = of_device(devices[first], group);
      std::size_t end = first + 1;
      while (end < devices.size() && of_device(devices[end], group) == communicator) ++end;
      line += fmt::format(" {}*{}", communicator, end - first);
      first = end;
    }
    lines.push_back(std::move(line));
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace stratagem::program
