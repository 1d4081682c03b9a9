// Tasks that copy between a device, its server's memory and the drives behind it.
#pragma once

#include <string>

#include "lowering/stages/groups.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// A copy of so many bytes, on the stream of its kind, after the tasks before it that it is to wait
/// for. What it copies is for the caller to say.
program::Task copy_task(Groups& groups, cost::CollectiveKind kind, std::string name, Bytes bytes);

/// A buffer on the host for what comes from the drives or goes there, known by a tensor.
program::Slot staging_slot(int tensor, Bytes bytes);

}  // namespace stratagem::lowering
