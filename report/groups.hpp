// The groups of a plan on the links of a cluster, for people: a table, and pictures.
#pragma once

#include <string>
#include <vector>

#include "report/group_links.hpp"
#include "topology/cluster.hpp"

namespace stratagem::report {

/// One line for every group: what it does, who is in it, which links it takes, and which takes
/// longest.
std::string groups_table(const std::vector<GroupLinks>& groups, const topology::Cluster& cluster);

/// The links of the first two servers (or of one) in the colours of the groups that use them, as
/// Graphviz reads it: `dot -Tpdf`.
std::string groups_dot(const std::vector<GroupLinks>& groups, const topology::Cluster& cluster);

/// The same as a picture.
std::string groups_svg(const std::vector<GroupLinks>& groups, const topology::Cluster& cluster);

}  // namespace stratagem::report
