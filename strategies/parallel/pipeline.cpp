// Pipeline parallelism: consecutive layers form stages, and stages stand on pipeline ranks.
#include <algorithm>
#include <numeric>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// How many of the model's layers (all segments but the first and the last) each stage has.
std::vector<int> layers_of_stages(const Options& options, int layers, int stages) {
  if (!options.layers_per_stage.empty()) {
    const std::vector<int>& given = options.layers_per_stage;
    const int sum = std::accumulate(given.begin(), given.end(), 0);
    if (static_cast<int>(given.size()) != stages || sum != layers) {
      throw InputError("", "",
                       "layers_per_stage with " + std::to_string(stages) +
                           " numbers that add up to " + std::to_string(layers),
                       std::to_string(given.size()) + " that add up to " + std::to_string(sum));
    }
    return given;
  }
  if (layers % stages != 0) {
    throw InputError(
        "", "",
        "a divisor of the model's " + std::to_string(layers) + " layers, or layers_per_stage",
        std::to_string(stages));
  }
  return std::vector<int>(stages, layers / stages);
}

/// op-assign of every operator of a stage.
void assign(Plan& plan, int stage, int first_device, int copy) {
  for (const int segment : plan.stages[stage]) {
    for (const model::OpId op : plan.graph().segments[segment].forward)
      plan.assign(op, first_device, copy);
  }
}

/// Divides an end that stands on all ranks over them, as tensor ranks would (tables along the
/// vocabulary), and puts it on the first.
void spread(Plan& plan, int stage, const Options& options) {
  const int per_rank = options.stride("pp");
  for (const int segment : plan.stages[stage]) {
    divide_as_tensor_ranks(plan, plan.graph().segments[segment].forward,
                           {.name = "pipeline", .size = options.pipeline, .stride = per_rank},
                           options);
  }
}

/// The stages' segments: layers, with the model's ends in the first and the last or apart.
std::vector<std::vector<int>> segments_of_stages(const std::vector<int>& layers, int segments,
                                                 const Ends& ends) {
  std::vector<std::vector<int>> stages(layers.size());
  int segment = 1;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    for (int i = 0; i < layers[stage]; ++i) stages[stage].push_back(segment++);
  }
  if (ends.embedding) {
    stages.insert(stages.begin(), {0});
  } else {
    stages.front().insert(stages.front().begin(), 0);
  }
  if (ends.head) stages.emplace_back();
  stages.back().push_back(segments - 1);
  if (std::ranges::any_of(stages, [](const auto& stage) { return stage.empty(); }))
    throw InputError("", "", "layers_per_stage that leaves no stage empty", "0 in one");
  return stages;
}

/// The pipeline rank of a copy of a stage. Replicas stand side by side, before those of the next
/// stage.
int rank_of_copy(const Options& options, const Schedule& schedule, int stage, int copy) {
  const std::vector<int>& replicas = options.replicas_per_stage;
  if (replicas.empty()) return rank_of(schedule.placement, options.pipeline, stage, copy);
  return std::accumulate(replicas.begin(), replicas.begin() + stage, copy);
}

}  // namespace

/// op-assign of every operator to the devices of its stage. The layers (all segments but the first
/// and the last) are divided evenly, or as layers_per_stage says; the first stage also has the
/// first segment (embeddings), the last stage the last (head), unless they stand apart. The
/// schedule says how many stages stand on one pipeline rank, and which. With replicas_per_stage,
/// stages are copied and micro-batches are dealt to the copies in turn. Source: Huang et al.,
/// GPipe, NeurIPS 2019; Narayanan et al., arXiv:2104.04473, section 2.2.
void pipeline(Plan& plan, const Options& options) {
  const Schedule& schedule = schedule_named(options.schedule);
  const int ranks = options.pipeline;
  const int chunks = options.chunks_of(schedule);
  const bool both_ways = schedule.placement == Placement::bidirectional;
  const int stages = Pipeline{.ranks = ranks, .chunks = chunks}.stages(schedule.placement);
  const Ends ends = options.ends(schedule);
  if (options.pipeline_ranks() == 1 && stages == 1 && !ends.any()) return;
  const auto segments = static_cast<int>(plan.graph().segments.size());
  plan.stages = segments_of_stages(layers_of_stages(options, segments - 2, stages), segments, ends);
  if (both_ways) plan.copy_stages({.of_stage = std::vector<int>(plan.stages.size(), 2)});
  if (!options.replicas_per_stage.empty()) {
    expects(schedule.takes_turns && !ends.any(), "replicas are for schedules that know of turns");
    plan.copy_stages({.of_stage = options.replicas_per_stage, .deal = Deal::turns});
  }
  const int per_rank = options.stride("pp");
  const auto device = [&](int rank) { return rank / options.ranks_per_device * per_rank; };
  const int first = ends.embedding ? 1 : 0;
  for (int copy = 0; copy < plan.copies().most(); ++copy) {
    for (int stage = 0; stage < stages; ++stage) {
      if (copy < plan.copies().of(first + stage))
        assign(plan, first + stage, device(rank_of_copy(options, schedule, stage, copy)), copy);
    }
    if (ends.embedding) assign(plan, 0, device(ends.embedding->front()), copy);
    if (ends.head) assign(plan, first + stages, device(ends.head->front()), copy);
  }
  if (ends.embedding && ends.embedding->size() > 1) spread(plan, 0, options);
  if (ends.head && ends.head->size() > 1) spread(plan, first + stages, options);
}

}  // namespace stratagem::strategies
