// Merges the lists of ranks by time.
#include "strategies/schedules/timetable/shared_ranks.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/input_error.hpp"
#include "strategies/schedules/timetable/cell_times.hpp"

namespace stratagem::strategies {

using placement::Cell;

Timetable on_shared_devices(const Timetable& timetable, int stages, const Pipeline& pipeline,
                            int per_device) {
  if (pipeline.ranks % per_device != 0) {
    throw InputError("", "",
                     "a divisor of the " + std::to_string(pipeline.ranks) +
                         " pipeline ranks as ranks_per_device",
                     std::to_string(per_device));
  }
  if (!timetable.together.empty())
    throw InputError("", "", "a schedule without paired cells for ranks that share a device", "");
  const std::map<Cell, Span> times = cell_times(stages, timetable, pipeline.costs);
  Timetable result;
  result.ranks.resize(timetable.ranks.size() / per_device);
  for (std::size_t rank = 0; rank < timetable.ranks.size(); ++rank) {
    std::vector<Cell>& device = result.ranks[rank / per_device];
    device.insert(device.end(), timetable.ranks[rank].begin(), timetable.ranks[rank].end());
  }
  for (std::vector<Cell>& device : result.ranks)
    std::ranges::stable_sort(device, {}, [&](const Cell& cell) { return times.at(cell).begin; });
  return result;
}

}  // namespace stratagem::strategies
