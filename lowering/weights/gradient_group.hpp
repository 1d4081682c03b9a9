// Devices of irregular stages that sum up the gradient of a part of a parameter.
#pragma once

#include <vector>

#include "lowering/blocks/blocks.hpp"
#include "lowering/weights/parameters.hpp"

namespace stratagem::lowering {

/// The devices over which `device` sums the gradient of its part, in the order of ranks; only
/// itself if there is nothing to sum. Devices that compute the same terms are replicas. If every
/// term has equally many replicas, there are as many groups as replicas, each with all terms.
/// Otherwise all devices with the part are one group, and a term that several devices have counts
/// once. Throws InputError if an operator's gradient is of another part than its device holds.
/// Source: Lin et al., nnScaler, OSDI 2024; its code, gen_weight.
std::vector<int> gradient_group(const strategies::Plan& plan, const Stages& stages,
                                const Blocks& blocks, const Holding& holding,
                                model::TensorId gradient, int device);

}  // namespace stratagem::lowering
