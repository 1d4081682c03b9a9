// The drives of a server: how many and how fast, and where they stand in its graph.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// The design with `count` drives of a kind in place of its own, if it has any; they are dealt to
/// the vertices `at` of it, PCIe switches or processors, as evenly as goes, in their order. Throws
/// InputError for a count below 1, for no places at all, and where ranks are processors, which have
/// no other memory to read drives into.
NodeDesign with_drives(const NodeDesign& design, int count, const Drives& drives,
                       const std::vector<VertexId>& at);

/// The design without any.
NodeDesign without_drives(const NodeDesign& design);

/// How many it has.
int drive_count(const NodeDesign& design);

/// What they hold all together.
Bytes capacity_of_drives(const NodeDesign& design);

/// The vertices that its drives stand at, each once, in the order of the drives.
std::vector<VertexId> places_of_drives(const NodeDesign& design);

/// Its processors, in order: where drives stand if nobody says otherwise.
std::vector<VertexId> processors_of(const NodeDesign& design);

/// An object that describes drives, see docs/reference/scenario.md. What it leaves out is as of the
/// design's own drives; without any of its own it must tell all but where they stand. Throws
/// InputError.
NodeDesign read_drives(const JsonReader& reader, const NodeDesign& design);

}  // namespace stratagem::topology
