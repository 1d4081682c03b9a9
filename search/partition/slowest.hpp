// What the parts of a micro-batch take on the slowest device.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "lowering/outline.hpp"
#include "study/least_times.hpp"
#include "study/run.hpp"

namespace stratagem::search {

/// The part to which a block of a cell belongs, the block by its place there.
using PartOf = std::function<int(const lowering::OutlinedCell& cell, std::size_t block)>;

/// By part: its blocks of the first micro-batch, as priced for the run, with the collectives that
/// they wait for, on the slowest of the device classes that have it. All links are each block's
/// own.
std::map<int, study::Picoseconds> slowest(const study::Run& run, const lowering::Outline& outline,
                                          const PartOf& part_of);

}  // namespace stratagem::search
