// Adds up least times of blocks by device class and part.
#include "search/partition/slowest.hpp"

#include <algorithm>
#include <utility>

#include "sim/price.hpp"

namespace stratagem::search {

std::map<int, study::Picoseconds> slowest(const study::Run& run, const lowering::Outline& outline,
                                          const PartOf& part_of) {
  const sim::Prices prices =
      sim::price(outline.program, run.profile, run.stack, run.cluster.gpus_per_node());
  study::LeastTimes least(outline.program, prices, run);
  std::map<std::pair<int, int>, study::Picoseconds> by_class;
  for (const lowering::OutlinedCell& cell : outline.cells) {
    if (cell.cell.micro_batch != 0) continue;
    for (std::size_t k = 0; k < cell.blocks.size(); ++k)
      by_class[{cell.device_class, part_of(cell, k)}] +=
          least.span(cell.blocks[k], cell.device_class);
  }
  std::map<int, study::Picoseconds> by_part;
  for (const auto& [where, time] : by_class) {
    study::Picoseconds& most = by_part[where.second];
    most = std::max(most, time);
  }
  return by_part;
}

}  // namespace stratagem::search
