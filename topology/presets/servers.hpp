// Servers of which several presets are made.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace stratagem::topology {

/// DGX-2 and DGX-2H have the same wiring and differ in their GPUs, and so have DGX H100 and DGX
/// H200.
NodeDesign dgx_2_design(const std::string& name, const std::string& gpu);
NodeDesign dgx_h100_design(const std::string& name, const std::string& gpu);

}  // namespace stratagem::topology
