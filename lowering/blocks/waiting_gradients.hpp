// Which cells reduce gradients, and the buffers in which these wait until then.
#pragma once

#include "program/program.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Does every cell reduce the gradients that it computes, rather than the last cell for all? Yes if
/// only shards are kept, or nothing because gradients leave for the host.
bool reduces_each_cell(const strategies::Plan& plan);

/// The bytes that a gradient's buffer takes of its own: 0 if gradients wait for their reduction in
/// buffers of a constant size.
Bytes own_bytes(const strategies::Plan& plan, program::Category category, Bytes bytes);

}  // namespace stratagem::lowering
