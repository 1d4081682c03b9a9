// Colour refinement: what is alike among the devices, flows and links of a program.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "sim/folding/raw_flows.hpp"

namespace stratagem::sim {

/// Colours from 0, each first seen after those below it.
struct Colours {
  std::vector<int> devices;
  std::vector<int> flows;
  std::vector<int> links;
  std::vector<int> communicators;  ///< equal where all their flows are
};

/// Refines until no colour divides any more, as `fold` describes (folding.hpp). Neighbourhoods are
/// compared by their signatures.
Colours colours_of(const program::Program& program, const RawFlows& raw);

}  // namespace stratagem::sim
