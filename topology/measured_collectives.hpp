// Collectives that were measured between the servers of a cluster.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// A kind of collective that a node file may have measured: its key there, where a design keeps
/// it, and what one is called.
struct MeasuredKind {
  std::string_view key;
  std::vector<MeasuredCollective> MeasuredCollectives::*list;
  std::string_view name;
};
inline constexpr std::array<MeasuredKind, 3> measured_kinds = {
    {{"all_reduces", &MeasuredCollectives::all_reduces, "all-reduce"},
     {"all_gathers", &MeasuredCollectives::all_gathers, "all-gather"},
     {"reduce_scatters", &MeasuredCollectives::reduce_scatters, "reduce-scatter"}}};

/// The lists of a node file, see docs/reference/scenario.md. `ports` is what all adapters of a
/// server carry in one direction. Throws InputError for other kinds without all-reduces, for fewer
/// than two servers, a number that is not above the one before it, a payload that is not above 0,
/// and no source. So it does for a rate that is not above 0 or above twice the ports: in-network
/// reductions reach twice, as do other kinds where two servers send each byte to each other once.
MeasuredCollectives read_measured(const JsonReader& file, BytesPerSecond ports);

}  // namespace stratagem::topology
