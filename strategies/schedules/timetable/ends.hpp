// Stages of their own for the two ends of a model, anywhere in the pipeline.
#pragma once

#include <optional>
#include <vector>

#include "strategies/plan/plan.hpp"
#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// On which pipeline ranks the first segment (embeddings) and the last (head) stand, where they are
/// stages of their own; then the embeddings are stage 0 and the head is the last stage.
struct Ends {
  std::optional<std::vector<int>> embedding;
  std::optional<std::vector<int>> head;
  [[nodiscard]] bool any() const { return embedding || head; }
};

/// `timetable` orders the stages between the ends, counted from 0. Each cell of an end is put where
/// it is wanted when the others run at `pipeline.costs`: embeddings before the forward cell that
/// reads them and after the backward cell that returns their gradient, the head's two cells between
/// the last stage's. Since all ranks follow one order of time, no rank waits for itself.
Timetable with_ends(const Timetable& timetable, Placement placement, const Pipeline& pipeline,
                    const Ends& ends);

/// The timetable that a schedule's op-orders leave for its stages. Throws InputError if they
/// contradict each other.
Timetable timetable_of(const std::vector<OrderRule>& rules, Placement placement,
                       const Pipeline& pipeline);

}  // namespace stratagem::strategies
