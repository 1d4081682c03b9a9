// Groups of a plan on the links of a cluster: bytes by the ring's formula, and who shares a link.
#include "report/groups.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::report {
namespace {

struct Grouped {
  Grouped(const std::string& preset, int nodes, const strategies::Options& options)
      : cluster(sim::cluster(preset, nodes)),
        program(sim::lowered_gpt(2, 1, options)),
        collectives(cluster, sim::ideal_network()),
        groups(group_links(program, collectives)) {}

  topology::Cluster cluster;
  program::Program program;
  cost::Collectives collectives;
  std::vector<GroupLinks> groups;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("tensor ranks send what a ring sends, each over its own NVLinks") {
  const Grouped grouped("dgx-2h", 1, {.tensor = 8});
  REQUIRE(grouped.groups.size() == 1);
  const GroupLinks& group = grouped.groups[0];
  CHECK(group.communicators == 1);
  CHECK(group.ranks.size() == 8);
  CHECK_THAT(group.what, ContainsSubstring("all_reduce"));
  // 2 x 7/8 of the payload over each GPU's six links to the switches of its board.
  Bytes from_first;
  for (const auto& [direction, bytes] : group.bytes) {
    const topology::Link& link = grouped.cluster.links()[direction.link];
    CHECK(link.kind == topology::LinkKind::nvlink);
    const topology::VertexId from = direction.forward ? link.a : link.b;
    if (grouped.cluster.vertices()[from].name == "node0/gpu0") from_first += bytes;
  }
  CHECK(close(from_first, 2 * 7.0 / 8 * group.payload, 1e-12));
}

TEST_CASE("data ranks of all tensor ranks of a server share its adapters") {
  const Grouped grouped("dgx-1v", 2, {.tensor = 8, .data = 2});
  const auto found = std::ranges::find_if(grouped.groups, [](const GroupLinks& group) {
    return group.ranks == std::vector<int>{0, 8};
  });
  REQUIRE(found != grouped.groups.end());
  CHECK(found->communicators == 8);
  // Two GPUs are nearest to each of the four adapters.
  const topology::LinkKind kind = grouped.cluster.links()[found->slowest.link].kind;
  CHECK(kind == topology::LinkKind::network);
  CHECK(found->on_slowest == 2);
  CHECK(close(found->bytes.at(found->slowest), 2 * found->payload, 1e-12));
  CHECK(close(found->slowest_time, 2 * found->payload / 12.5_GBps, 1e-12));
}

TEST_CASE("one GPU has no groups") {
  const Grouped grouped("dgx-1v", 1, {});
  CHECK(grouped.groups.empty());
  CHECK(groups_table(grouped.groups, grouped.cluster) == "nothing is communicated\n");
}

TEST_CASE(
    "pictures show every vertex of two servers, every link, and a line for every group on it") {
  const Grouped grouped("dgx-1v", 3, {.tensor = 8, .data = 3});
  std::size_t lines = 0;
  std::size_t shown = 0;
  for (std::size_t id = 0; id < grouped.cluster.links().size(); ++id) {
    const topology::Link& link = grouped.cluster.links()[id];
    const auto& vertices = grouped.cluster.vertices();
    if (vertices[link.a].node > 1 || vertices[link.b].node > 1) continue;
    ++shown;
    std::size_t on_it = 0;
    for (const GroupLinks& group : grouped.groups) {
      const bool used = group.bytes.contains({static_cast<int>(id), true}) ||
                        group.bytes.contains({static_cast<int>(id), false});
      on_it += used ? 1 : 0;
    }
    lines += std::max<std::size_t>(on_it, 1);
  }
  CHECK(shown > 40);
  const std::string svg = groups_svg(grouped.groups, grouped.cluster);
  CHECK(count(svg, "<line ") == lines);
  CHECK(count(svg, "</line>") == lines);
  const std::size_t vertices = 2 * grouped.cluster.design().vertices.size() + 1;
  CHECK(count(svg, "<rect ") == vertices);
  const std::string dot = groups_dot(grouped.groups, grouped.cluster);
  CHECK(count(dot, " -- ") == lines);
  CHECK(count(dot, "label=") == vertices);
}

}  // namespace stratagem::report
