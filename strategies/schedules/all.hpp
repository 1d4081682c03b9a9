// Every pipeline schedule by name.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "strategies/plan/plan.hpp"
#include "strategies/schedules/timetable/ends.hpp"
#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// The number of stages on a rank is for the user to choose: the option "chunks".
constexpr int any_chunks = 0;

/// An order of the cells of `plan.stages` for `plan.micro_batches`. A file of this folder defines a
/// function that returns it, and all.cpp names that function.
struct Schedule {
  /// A few op-orders with arithmetic: i is a stage, m a micro-batch, S and M say how many there
  /// are.
  using Rules = void (*)(Plan&);
  /// A list of cells for each rank. Throws InputError for numbers that it cannot order.
  using TimetableOf = Timetable (*)(const Pipeline&);

  std::string name;
  std::string summary;
  Placement placement = Placement::loop;
  int chunks = 1;  ///< stages on every pipeline rank, or any_chunks
  std::variant<Rules, TimetableOf> orders;
  bool spreads_ends = false;  ///< embeddings and head over all ranks, as stages of their own
  int forward_passes = 1;     ///< of each micro-batch
  bool takes_turns = false;   ///< orders stages with several copies that take turns
};
/// All of them, in the order of --help.
const std::vector<Schedule>& schedules();
/// Names of some: "interleaved, hanayo".
std::string schedules_that(const std::function<bool(const Schedule&)>& are_so);
/// Expects that there is one of the name.
const Schedule& schedule_named(const std::string& name);

/// Orders all cells of a plan whose stages stand on the pipeline's ranks as the schedule's
/// placement says, but for the ends; several ranks may share a device. Throws InputError for
/// numbers that it cannot order.
void apply(const Schedule& schedule, Plan& plan, const Pipeline& pipeline, const Ends& ends,
           int ranks_per_device);

}  // namespace stratagem::strategies
