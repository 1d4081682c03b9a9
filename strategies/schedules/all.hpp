// Every pipeline schedule by name.
#pragma once

#include <string>
#include <vector>

#include "strategies/plan.hpp"
#include "strategies/timetable.hpp"

namespace stratagem::strategies {

/// An order of the cells of `plan.stages` for `plan.micro_batches`: as a few op-orders with
/// arithmetic, or as a timetable.
struct Schedule {
  std::string name;
  std::string summary;
  Placement placement = Placement::loop;
  int chunks = 1;  ///< stages on every pipeline rank; 0: as many as the option "chunks" says
  void (*orders)(Plan&) = nullptr;
  Timetable (*timetable)(const Pipeline&) = nullptr;
};
const std::vector<Schedule>& schedules();
/// Expects that there is one of the name.
const Schedule& schedule_named(const std::string& name);

/// Orders all cells of a plan whose stages stand on `ranks` pipeline ranks as the schedule's placement
/// says.
void apply(const Schedule& schedule, Plan& plan, int ranks, int chunks);

}  // namespace stratagem::strategies
