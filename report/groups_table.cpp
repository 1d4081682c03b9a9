// Lines up what group_links found.
#include <fmt/format.h>

#include "base/quantity_text.hpp"
#include "report/groups.hpp"

namespace stratagem::report {
namespace {

/// "0-7", "0, 8, ... 56" or a list.
std::string text_of(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return std::to_string(ranks[0]);
  const int stride = ranks[1] - ranks[0];
  bool even = true;
  for (std::size_t i = 1; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == stride;
  if (even && stride == 1 && ranks.size() > 2)
    return fmt::format("{}-{}", ranks.front(), ranks.back());
  if (even && ranks.size() > 3)
    return fmt::format("{}, {}, ... {}", ranks[0], ranks[1], ranks.back());
  return fmt::format("{}", fmt::join(ranks, ", "));
}

/// "96 NVLink, 16 network": how many links are in use.
std::string links_text(const GroupLinks& group, const topology::Cluster& cluster) {
  std::map<topology::LinkKind, std::map<topology::LinkId, bool>> used;
  for (const auto& [direction, bytes] : group.bytes)
    used[cluster.links()[direction.link].kind][direction.link] = true;
  std::string text;
  for (const auto& [kind, links] : used)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", links.size(), topology::to_text(kind));
  return text.empty() ? "none" : text;
}

std::string slowest_text(const GroupLinks& group, const topology::Cluster& cluster) {
  if (group.slowest_time.value <= 0) return "";
  const topology::Link& link = cluster.links()[group.slowest.link];
  const auto name = [&](topology::VertexId vertex) { return cluster.vertices()[vertex].name; };
  const topology::VertexId from = group.slowest.forward ? link.a : link.b;
  const topology::VertexId to = group.slowest.forward ? link.b : link.a;
  return fmt::format("{} to {}: {} in {}{}", name(from), name(to),
                     to_text(group.bytes.at(group.slowest)), to_text(group.slowest_time),
                     group.on_slowest > 1 ? fmt::format(", of {} groups", group.on_slowest) : "");
}

}  // namespace

std::string groups_table(const std::vector<GroupLinks>& groups, const topology::Cluster& cluster) {
  std::string text;
  for (const GroupLinks& group : groups) {
    text += fmt::format("{}\n  {} x {} ranks, the first {}; payload {} an iteration\n", group.what,
                        group.communicators, group.ranks.size(), text_of(group.ranks),
                        to_text(group.payload));
    text += fmt::format("  links in use: {}\n", links_text(group, cluster));
    const std::string slowest = slowest_text(group, cluster);
    if (!slowest.empty()) text += fmt::format("  takes longest: {}\n", slowest);
  }
  return text.empty() ? "nothing is communicated\n" : text;
}

}  // namespace stratagem::report
