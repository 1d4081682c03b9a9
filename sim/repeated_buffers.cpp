// Compares what is live at the begin and the end of a period, micro-batch by micro-batch.
#include "sim/repeated_buffers.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <utility>

#include "program/buffers.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

/// What a buffer is, but for its micro-batch, then that.
struct Identity {
  int block = 0;
  int segment = -1;
  placement::Cell of_first;  ///< the cell, of micro-batch 0
  std::ptrdiff_t slot = 0;
  int micro_batch = 0;
  int number = 0;

  [[nodiscard]] bool is_like(const Identity& other) const {
    return block == other.block && segment == other.segment && of_first == other.of_first &&
           slot == other.slot;
  }
  friend auto operator<=>(const Identity&, const Identity&) = default;
};

using Live = std::vector<Identity>;
/// By place and category.
using Levels = std::array<std::array<Bytes, program::category_names.size()>, 3>;

/// What is live around the period that an actor's first round leaves out.
struct Around {
  Live before;  ///< in the order of launches
  Live after;
  Levels from{};  ///< in the order of time
  Levels to{};
};

Around around(const Program& program, const Timeline& timeline, std::size_t actor) {
  const int sequence = timeline.actors[actor].sequence;
  const program::Calls& calls = timeline.played.sequences[sequence].calls;
  const program::Buffers buffers(program, timeline.played.sequences[sequence]);
  const FlatTasks& tasks = timeline.tasks[sequence];
  const LeftOut& period = timeline.left_out.front();
  const auto& [begin, end] = period.launched[actor];
  const std::vector<Instant>& begins = timeline.times[actor].begins.front();
  const std::vector<Instant>& ends = timeline.times[actor].ends.front();
  Around result;
  for (int number = 0; number < buffers.resident(0); ++number) {
    const program::Buffer buffer = buffers[number];
    const int born = tasks.number(buffer.born->call, buffer.born->task);
    const int dies = buffer.dies ? tasks.number(buffer.dies->call, buffer.dies->task)
                                 : static_cast<int>(tasks.size());
    const auto add_to = [&](Levels& levels, Instant when) {
      if (begins[born] > when || (buffer.dies && ends[dies] <= when)) return;
      levels[static_cast<std::size_t>(buffer.place)][static_cast<std::size_t>(buffer.category)] +=
          buffer.bytes;
    };
    add_to(result.from, period.from);
    add_to(result.to, period.to);
    if (born >= end || dies < begin) continue;
    const program::Call call = calls[buffer.born->call];
    Identity identity{.block = call.block,
                      .segment = call.segment,
                      .of_first = call.cell,
                      .slot = buffer.slot - program.blocks[call.block].slots.data(),
                      .micro_batch = call.cell.micro_batch,
                      .number = number};
    identity.of_first.micro_batch = 0;
    if (born < begin) result.before.push_back(identity);
    if (dies >= end) result.after.push_back(identity);
  }
  std::ranges::sort(result.before);
  std::ranges::sort(result.after);
  return result;
}

/// Is a resident that lives in a part of an iteration allocated or freed in the period? That
/// happens once an iteration, not once a period.
bool a_resident_changes(const Timeline& timeline, std::size_t actor) {
  const int sequence = timeline.actors[actor].sequence;
  const FlatTasks& tasks = timeline.tasks[sequence];
  const LeftOut& period = timeline.left_out.front();
  const ActorTimes& times = timeline.times[actor];
  const auto is_inside = [&](const program::TaskOfCall& task, const std::vector<Instant>& when) {
    const int number = tasks.number(task.call, task.task);
    const auto& [begin, end] = period.launched[actor];
    return (begin <= number && number < end) ||
           (period.from < when[number] && when[number] <= period.to);
  };
  return std::ranges::any_of(
      timeline.played.sequences[sequence].residents, [&](const program::Resident& resident) {
        return resident.span && (is_inside(resident.span->first, times.begins.front()) ||
                                 is_inside(resident.span->last, times.ends.front()));
      });
}

/// By how many micro-batches an actor's period goes on.
int micro_batches_of_period(const Timeline& timeline, std::size_t actor) {
  const int sequence = timeline.actors[actor].sequence;
  const auto& [loop, lacking] = timeline.played.long_loops[sequence];
  return lacking / timeline.left_out.front().periods *
         timeline.played.sequences[sequence].calls.loops()[loop].step;
}

std::optional<std::vector<Renamed>> renamed(const Around& around, int later) {
  const Live& before = around.before;
  const Live& after = around.after;
  if (before.size() != after.size()) return std::nullopt;
  std::vector<Renamed> result;
  for (std::size_t first = 0, end = 0; first < before.size(); first = end) {
    while (end < before.size() && before[end].is_like(before[first])) ++end;
    const auto are_later_by = [&](int micro_batches) {
      for (std::size_t i = first; i < end; ++i) {
        if (!after[i].is_like(before[i])) return false;
        if (after[i].micro_batch != before[i].micro_batch + micro_batches) return false;
        if (micro_batches == 0 && after[i].number != before[i].number) return false;
      }
      return true;
    };
    if (are_later_by(0)) continue;
    if (!are_later_by(later)) return std::nullopt;
    for (std::size_t i = first; i < end; ++i)
      result.push_back({.after = after[i].number, .before = before[i].number});
  }
  return result;
}

}  // namespace

bool buffers_repeat(const Program& program, Timeline& timeline) {
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    if (a_resident_changes(timeline, a)) return false;
    const Around one = around(program, timeline, a);
    if (one.from != one.to) return false;
    auto buffers = renamed(one, micro_batches_of_period(timeline, a));
    if (!buffers) return false;
    timeline.renamed.push_back(std::move(*buffers));
  }
  return true;
}

}  // namespace stratagem::sim
