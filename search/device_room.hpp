// What of a device's memory is left for a plan's buffers.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "study/run.hpp"

namespace stratagem::search {

/// By device class: without the context, communicators and workspace.
std::vector<Bytes> device_room(const study::Run& run, const program::Program& program);

}  // namespace stratagem::search
