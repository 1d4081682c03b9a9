// Sums routes over the collectives of one iteration.
#include "report/group_links.hpp"

#include <fmt/format.h>

#include <set>
#include <tuple>

namespace stratagem::report {
namespace {

using program::Collective;
using program::Program;
using program::Stream;

/// How often a device posts one kind and size of collective of a group in an iteration.
using Posted = std::map<std::pair<cost::CollectiveKind, Bytes>, int>;

/// What a device posts to a group, and on which streams.
Posted posted(const Program& program, int device, int group, std::set<Stream>& streams) {
  Posted result;
  const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
  for (const program::Call& call : sequence.calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      const auto* work = std::get_if<Collective>(&task.work);
      if (work == nullptr || work->group != group) continue;
      ++result[{work->kind, work->payload}];
      streams.insert(task.stream);
    }
  }
  return result;
}

std::string describe(const Posted& posted, const std::set<Stream>& streams) {
  std::map<cost::CollectiveKind, int> counts;
  for (const auto& [work, count] : posted) counts[work.first] += count;
  std::string text;
  for (const Stream stream : streams) {
    text += (text.empty() ? "" : ", ");
    text += program::stream_names[static_cast<std::size_t>(stream)];
  }
  const char* separator = ": ";
  for (const auto& [kind, count] : counts) {
    text += fmt::format("{}{} {}", separator, count, cost::to_text(kind));
    separator = ", ";
  }
  return text;
}

/// Bytes that a communicator puts on links in an iteration.
std::map<topology::Direction, Bytes> bytes_of(const Posted& posted, const std::vector<int>& ranks,
                                              cost::Collectives& collectives) {
  std::map<topology::Direction, Bytes> bytes;
  for (const auto& [work, count] : posted) {
    const cost::Route route = collectives.route(work.first, ranks, work.second);
    for (const cost::LinkLoad& load : route.loads)
      bytes[load.direction] += count * load.load * work.second;
  }
  return bytes;
}

void find_slowest(GroupLinks& group, const std::map<topology::Direction, int>& users,
                  const cost::Collectives& collectives) {
  for (const auto& [direction, bytes] : group.bytes) {
    const topology::Link& link = collectives.cluster().links()[direction.link];
    const Seconds time = bytes / collectives.usable(link, direction.forward);
    if (time <= group.slowest_time) continue;
    group.slowest = direction;
    group.slowest_time = time;
    group.on_slowest = users.at(direction);
  }
}

GroupLinks links_of(const Program& program, int group, cost::Collectives& collectives) {
  GroupLinks result;
  std::set<int> seen;
  std::map<topology::Direction, int> users;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    const std::vector<int>& groups = program.devices[device].groups;
    const int communicator = groups[group];
    if (communicator < 0 || !seen.insert(communicator).second) continue;
    const std::vector<int>& ranks = program.communicators[communicator].ranks;
    std::set<Stream> streams;
    const Posted work = posted(program, static_cast<int>(device), group, streams);
    if (work.empty()) continue;
    if (result.communicators++ == 0) {
      result.what = describe(work, streams);
      result.ranks = ranks;
      for (const auto& [one, count] : work) result.payload += count * one.second;
    }
    for (const auto& [direction, bytes] : bytes_of(work, ranks, collectives)) {
      result.bytes[direction] += bytes;
      ++users[direction];
    }
  }
  find_slowest(result, users, collectives);
  return result;
}

}  // namespace

std::vector<GroupLinks> group_links(const Program& program, cost::Collectives& collectives) {
  std::vector<GroupLinks> all;
  const auto groups = program.devices.empty() ? 0 : program.devices.front().groups.size();
  for (std::size_t group = 0; group < groups; ++group) {
    GroupLinks one = links_of(program, static_cast<int>(group), collectives);
    if (one.communicators > 0) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace stratagem::report
