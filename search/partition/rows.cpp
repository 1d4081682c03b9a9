// Adds up prices and bytes of an outline's blocks, segment by segment.
#include "search/partition/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/outline.hpp"
#include "search/device_room.hpp"
#include "search/partition/slowest.hpp"
#include "strategies/schedules/all.hpp"
#include "study/bounds.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::search {
namespace {

using lowering::Outline;
using lowering::OutlinedCell;
using placement::CellPass;
using study::Picoseconds;

/// So many layers in each stage, the first ones of which have one more.
Json evenly(int layers, int stages) {
  Json counts = Json::array();
  for (int stage = 0; stage < stages; ++stage)
    counts.push(layers / stages + (stage < layers % stages ? 1 : 0));
  return counts;
}

void refuse_if(bool is_so, const std::string& what) {
  if (is_so)
    throw InputError("", "/strategy",
                     "a plan with one stage on each device, whose cells are all alike", what);
}

study::Run even_run(const study::Run& run) {
  const strategies::Schedule& schedule = strategies::schedule_named(run.options.schedule);
  refuse_if(run.options.chunks_of(schedule) > 1, "several stages on a device");
  const auto layers = static_cast<int>(model::layers(*run.graph).size());
  const int stages = run.options.pipeline;
  if (stages > layers) {
    throw InputError("", "/strategy/pipeline",
                     fmt::format("at most as many stages as the model has layers, {}", layers),
                     std::to_string(stages));
  }
  return study::with_settings(
      run, Json::object().set("strategy",
                              Json::object().set("layers_per_stage", evenly(layers, stages))));
}

void refuse_unlike(const study::Run& run, const strategies::Plan& plan, const Outline& outline) {
  refuse_if(static_cast<int>(plan.stages.size()) != run.options.pipeline,
            "several stages on a device, or ends of the model apart");
  refuse_if(run.options.stages.ranks_per_device > 1, "several stages on a device");
  refuse_if(plan.slices() > 1, "token slices");
  refuse_if(run.options.recompute.layers > 0 || run.options.recompute.together > 1,
            "recomputation that depends on a layer's place in its stage");
  refuse_if(!plan.orders().together.empty(), "cells that run together");
  refuse_if(plan.residency.keeps_segments() || plan.residency.keeps_cells(),
            "activations that wait elsewhere");
  std::map<int, int> stage_of;  // by device class
  for (const OutlinedCell& cell : outline.cells) {
    const auto [known, added] = stage_of.emplace(cell.device_class, cell.cell.stage);
    refuse_if(known->second != cell.cell.stage, "several stages on a device");
  }
}

/// By segment.
std::vector<Bytes> rises_of(const Outline& outline) {
  std::vector<Bytes> rises(outline.segments.size());
  std::map<int, Bytes> known;
  for (const OutlinedCell& cell : outline.cells) {
    for (std::size_t k = 0; k < cell.blocks.size(); ++k) {
      const auto [rise, added] = known.try_emplace(cell.blocks[k]);
      if (added) rise->second = study::rise_of(outline.program.blocks[cell.blocks[k]]);
      rises[cell.segments[k]] = std::max(rises[cell.segments[k]], rise->second);
    }
  }
  return rises;
}

/// By stage: versions of its weights.
std::vector<int> versions_of(const program::Program& program, const Outline& outline,
                             std::size_t stages) {
  std::vector<int> of_class(program.sequences.size(), 1), versions(stages, 1);
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    for (const program::Resident& resident : program.sequences[c].residents)
      of_class[c] = std::max(of_class[c], resident.versions);
  }
  for (const OutlinedCell& cell : outline.cells)
    versions[cell.cell.stage] = std::max(versions[cell.cell.stage], of_class[cell.device_class]);
  return versions;
}

/// What a device holds when steps begin beside what belongs to its stage's parameters.
Bytes beside_of(const Outline& outline, const strategies::Plan& plan) {
  Bytes most;
  std::vector<bool> seen(outline.at_steps.size());
  for (const OutlinedCell& cell : outline.cells) {
    if (seen[cell.device_class]) continue;
    seen[cell.device_class] = true;
    Bytes beside = outline.at_steps[cell.device_class];
    for (const int segment : plan.stages[cell.cell.stage])
      beside -= outline.segments[segment].at_steps;
    most = std::max(most, beside);
  }
  return most;
}

/// Unless it is no more than another; those that are no more than it go.
void add(std::vector<InFlight>& times, const InFlight& now) {
  const auto within = [](const InFlight& less, const InFlight& more) {
    return less.backward <= more.backward && less.weight <= more.weight;
  };
  if (std::ranges::any_of(times, [&](const InFlight& other) { return within(now, other); })) return;
  std::erase_if(times, [&](const InFlight& other) { return within(other, now); });
  times.push_back(now);
}

/// By stage, in the order of cells of its devices: what waits behind each of its cells.
std::vector<std::vector<InFlight>> in_flight_of(const Outline& outline, std::size_t stages) {
  std::set<int> split;  // stages whose weights have passes of their own
  for (const OutlinedCell& cell : outline.cells) {
    if (cell.cell.pass == CellPass::weight) split.insert(cell.cell.stage);
  }
  std::vector<InFlight> now(outline.always.size());
  std::vector<std::vector<InFlight>> result(stages, {InFlight{}});
  for (const OutlinedCell& cell : outline.cells) {
    InFlight& waiting = now[cell.device_class];
    if (cell.cell.pass == CellPass::forward && cell.leaves > Bytes{}) ++waiting.backward;
    if (cell.cell.pass == CellPass::weight) --waiting.weight;
    if (cell.cell.pass == CellPass::backward) {
      --waiting.backward;
      if (split.contains(cell.cell.stage)) ++waiting.weight;
    }
    add(result[cell.cell.stage], waiting);
  }
  return result;
}

}  // namespace

Rows rows_of(const study::Run& asked) {
  const study::Run run = even_run(asked);
  const strategies::Plan plan = study::plan_of(run);
  const Outline outline = lowering::outline(plan, run.stack, run.training);
  refuse_unlike(run, plan, outline);
  std::map<int, Picoseconds> times = slowest(  // by segment
      run, outline, [](const OutlinedCell& cell, std::size_t k) { return cell.segments[k]; });
  const std::vector<Bytes> rises = rises_of(outline);
  const program::Program program = study::program_of(run, plan);
  const std::vector<int> layers = model::layers(*run.graph);
  Rows result{.in_flight = in_flight_of(outline, plan.stages.size()),
              .versions = versions_of(program, outline, plan.stages.size()),
              .room = std::ranges::min(device_room(run, program)) - beside_of(outline, plan),
              .micro_batches = run.batch.micro_batches,
              .flush = plan.updates.flush};
  const auto last = static_cast<int>(outline.segments.size()) - 1;
  bool joins = false;  // an end of the model in its middle goes with the layer behind it
  for (int segment = 0; segment <= last; ++segment) {
    const bool layer = std::ranges::binary_search(layers, segment);
    if (!joins) result.rows.push_back({.layers = 0});
    joins = !layer && segment > 0 && segment < last;
    Row& row = result.rows.back();
    const lowering::OutlinedSegment& bytes = outline.segments[segment];
    row.layers += layer ? 1 : 0;
    row.time += times[segment];
    row.at_steps += bytes.at_steps;
    row.parameters += bytes.parameters;
    row.gradients += bytes.gradients;
    row.leaves += bytes.leaves;
    row.waits += bytes.waits;
    row.rises = std::max(row.rises, rises[segment]);
    row.passes_on = bytes.passes_on;
  }
  return result;
}

std::vector<std::vector<Row>> joined(const std::vector<Row>& rows) {
  const std::size_t count = rows.size();
  std::vector<std::vector<Row>> all(count, std::vector<Row>(count + 1, Row{.layers = 0}));
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t last = from; last < count; ++last) {
      const Row &before = all[from][last], &own = rows[last];
      all[from][last + 1] = {.layers = before.layers + own.layers,
                             .time = before.time + own.time,
                             .at_steps = before.at_steps + own.at_steps,
                             .parameters = before.parameters + own.parameters,
                             .gradients = before.gradients + own.gradients,
                             .leaves = before.leaves + own.leaves,
                             .waits = before.waits + own.waits,
                             .rises = std::max(before.rises, own.rises),
                             .passes_on = own.passes_on};
    }
  }
  return all;
}

Bytes needs(const Row& rows, const std::vector<InFlight>& in_flight, int versions) {
  Bytes held;
  for (const InFlight& now : in_flight)
    held = std::max(held, now.backward * rows.leaves + now.weight * rows.waits);
  return rows.at_steps + (versions - 1) * rows.parameters + held + rows.rises;
}

std::string words(const std::vector<Row>& rows, int from, int to) {
  int first = 0, count = 0;
  for (int row = 0; row < to; ++row) (row < from ? first : count) += rows[row].layers;
  std::vector<std::string> parts;
  if (from == 0 && rows.front().layers == 0) parts.emplace_back("embedding");
  if (count == 1) parts.push_back(fmt::format("layer {}", first));
  if (count > 1) parts.push_back(fmt::format("layers {}-{}", first, first + count - 1));
  if (to == static_cast<int>(rows.size()) && rows.back().layers == 0) parts.emplace_back("head");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace stratagem::search
