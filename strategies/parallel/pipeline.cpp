// Pipeline parallelism: consecutive layers form stages, and stages stand on pipeline ranks.
#include <algorithm>
#include <numeric>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

/// What makes the number of stages: "pipeline 8 x chunks 2 = 16 stages".
std::string product_of(const Options& options, int stages) {
  const std::string all = std::to_string(stages) + " stages";
  if (stages == options.pipeline) return all;
  return "pipeline " + std::to_string(options.pipeline) + " x chunks " +
         std::to_string(stages / options.pipeline) + " = " + all;
}

/// How many of the model's layers each stage has.
std::vector<int> layers_of_stages(const Options& options, int layers, int stages) {
  if (const std::vector<int>& given = options.stages.layers; !given.empty()) {
    const int sum = std::accumulate(given.begin(), given.end(), 0);
    if (static_cast<int>(given.size()) != stages || sum != layers) {
      throw InputError("", path_of(&Options::stages, &StageOptions::layers),
                       std::to_string(stages) + " numbers that add up to " + std::to_string(layers),
                       std::to_string(given.size()) + " that add up to " + std::to_string(sum));
    }
    return given;
  }
  if (layers % stages != 0) {
    throw InputError(
        "", "",
        "a divisor of the model's " + std::to_string(layers) + " layers, or layers_per_stage",
        product_of(options, stages));
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

/// Divides a stage that stands on all ranks over them, as tensor ranks would: tables along the
/// vocabulary, one that both ends of the model read alike.
void add_spread(const Plan& plan, const std::optional<std::vector<int>>& ranks, int stage,
                std::vector<model::OpId>& spread) {
  if (!ranks || ranks->size() == 1) return;
  for (const int segment : plan.stages[stage]) {
    const std::vector<model::OpId>& ops = plan.graph().segments[segment].forward;
    spread.insert(spread.end(), ops.begin(), ops.end());
  }
}

/// The stages' segments: so many layers each, with the head in the last and each embedding in the
/// stage of the layer after it, or these ends of the model apart: embeddings as the first stage,
/// the head as the last.
std::vector<std::vector<int>> segments_of_stages(const model::Graph& graph,
                                                 const std::vector<int>& counts, const Ends& ends) {
  std::vector<std::vector<int>> stages(counts.size());
  std::vector<int> embeddings;
  const std::vector<int> layers = model::layers(graph);
  const auto head = static_cast<int>(graph.segments.size()) - 1;
  for (int segment = 0, layer = 0, stage = 0; segment < head; ++segment) {
    const bool embeds = !std::ranges::binary_search(layers, segment);
    if (embeds && ends.embedding) {
      embeddings.push_back(segment);
      continue;
    }
    while (segment > 0 && layer == counts[stage] && stage + 1 < static_cast<int>(counts.size())) {
      ++stage;
      layer = 0;
    }
    stages[stage].push_back(segment);
    if (!embeds) ++layer;
  }
  if (ends.embedding) stages.insert(stages.begin(), std::move(embeddings));
  if (ends.head) stages.emplace_back();
  stages.back().push_back(head);
  if (std::ranges::any_of(stages, [](const auto& stage) { return stage.empty(); }))
    throw InputError("", "", "layers_per_stage that leaves no stage empty", "0 in one");
  return stages;
}

/// The pipeline rank of a copy of a stage. Replicas stand side by side, before those of the next
/// stage.
int rank_of_copy(const Options& options, const Schedule& schedule, int stage, int copy) {
  const std::vector<int>& replicas = options.stages.replicas;
  if (replicas.empty()) return rank_of(schedule.placement, options.pipeline, stage, copy);
  return std::accumulate(replicas.begin(), replicas.begin() + stage, copy);
}

/// op-assign of every operator of the stages to the device of its pipeline rank, and of the ends of
/// the model that stand apart. What stands on all ranks is divided over them.
void assign_devices(Plan& plan, const Options& options, const Schedule& schedule,
                    const Ends& ends) {
  const int per_rank = stride_of(options, "pp");
  const std::vector<int>& places = options.stages.places;
  const auto device = [&](int rank) {
    const int place = rank / options.stages.ranks_per_device;
    return (places.empty() ? place : places[place]) * per_rank;
  };
  const auto first_device = [&](const std::vector<int>& of) {
    return of.size() > 1 ? 0 : device(of.front());
  };
  const int first = ends.embedding ? 1 : 0;
  const auto last = static_cast<int>(plan.stages.size()) - 1;
  for (int copy = 0; copy < plan.copies().most(); ++copy) {
    for (int stage = first; stage <= (ends.head ? last - 1 : last); ++stage) {
      if (copy < plan.copies().of(stage))
        assign(plan, stage, device(rank_of_copy(options, schedule, stage - first, copy)), copy);
    }
    if (ends.embedding) assign(plan, 0, first_device(*ends.embedding), copy);
    if (ends.head) assign(plan, last, first_device(*ends.head), copy);
  }
  std::vector<model::OpId> spread;
  add_spread(plan, ends.embedding, 0, spread);
  add_spread(plan, ends.head, last, spread);
  divide_as_tensor_ranks(
      plan, spread, {.name = "pipeline", .size = options.pipeline, .stride = per_rank}, options);
}

/// op-assign of every operator to the devices of its stage. The layers are divided evenly, or as
/// layers_per_stage says; the ends of the model are with the layers beside them, or stand apart.
/// The schedule says how many stages stand on one pipeline rank, and which. With
/// replicas_per_stage, stages are copied and micro-batches are dealt to the copies in turn. Source:
/// Huang et al., GPipe, NeurIPS 2019; Narayanan et al., arXiv:2104.04473, section 2.2.
void assign_stages(Plan& plan, const Options& options) {
  const Schedule& schedule = schedule_named(options.schedule);
  const Pipeline shape{.ranks = options.pipeline, .chunks = options.chunks_of(schedule)};
  const int stages = shape.stages(schedule.placement);
  const Ends ends = options.ends(schedule);
  if (schedule.spreads_ends && (options.stages.embedding || options.stages.head))
    throw InputError("", "",
                     "a schedule that does not spread embeddings and head itself, beside "
                     "embedding or head",
                     schedule.name);
  if (options.pipeline_ranks() == 1 && stages == 1 && !ends.any()) return;
  const model::Graph& graph = plan.graph();
  const auto layers = static_cast<int>(model::layers(graph).size());
  plan.stages = segments_of_stages(graph, layers_of_stages(options, layers, stages), ends);
  if (schedule.placement == Placement::bidirectional)
    plan.copy_stages({.of_stage = std::vector<int>(plan.stages.size(), 2)});
  if (!options.stages.replicas.empty()) {
    expects(schedule.takes_turns && !ends.any(), "replicas are for schedules that know of turns");
    plan.copy_stages({.of_stage = options.stages.replicas, .deal = Deal::turns});
  }
  assign_devices(plan, options, schedule, ends);
}

/// Nothing for `usual`, all_ranks for "all", else the number of a rank.
Format<std::optional<int>> end_of_model(const std::string& usual) {
  const Format<std::string> word = words({usual, "all"});
  const Format<std::int64_t> rank = whole(0);
  return {{Json::object().set("anyOf", Json::array().push(word.schema).push(rank.schema)),
           word.words + " or " + rank.words},
          [=](const JsonReader& reader) -> std::optional<int> {
            if (reader.is_number()) return static_cast<int>(rank.read(reader));
            if (word.read(reader) == usual) return std::nullopt;
            return StageOptions::all_ranks;
          }};
}

/// Ends of the model on ranks, and ranks that share devices, are of so many ranks.
void check_ranks(const Options& options, const JsonReader& strategy) {
  const std::string last = "at most " + std::to_string(options.pipeline - 1);
  const StageOptions& stages = options.stages;
  if (stages.embedding.value_or(0) >= options.pipeline) strategy.at("embedding").fail(last);
  if (stages.head.value_or(0) >= options.pipeline) strategy.at("head").fail(last);
  if (options.pipeline % stages.ranks_per_device != 0) {
    strategy.at("ranks_per_device")
        .fail("a divisor of pipeline, " + std::to_string(options.pipeline));
  }
}

/// A number for every stage, and what replicas cannot be combined with.
void check_replicas(const Options& options, const JsonReader& replicas) {
  const StageOptions& stages = options.stages;
  if (static_cast<int>(stages.replicas.size()) != options.pipeline) {
    replicas.fail("a number for each of the " + std::to_string(options.pipeline) + " stages",
                  std::to_string(stages.replicas.size()));
  }
  if (std::ranges::max(stages.replicas) == 1) return;
  if (!schedule_named(options.schedule).takes_turns) {
    replicas.fail("one of each stage with the schedule " + options.schedule +
                  "; replicas take turns with " + schedules_that(&Schedule::takes_turns));
  }
  if (stages.embedding || stages.head)
    replicas.fail("one of each stage where ends of the model stand apart");
  if (stages.ranks_per_device > 1) replicas.fail("one of each stage where ranks share devices");
}

/// Each place once.
void check_places(const Options& options, const JsonReader& strategy) {
  std::vector<int> places = options.stages.places;
  if (places.empty()) return;
  std::vector<int> all(size_of(options, "pp"));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(places);
  if (places != all)
    strategy.at("stage_order").fail("each of 0 to " + std::to_string(all.size() - 1) + " once");
}

void complete_stages(Options& options, const JsonReader& strategy) {
  check_ranks(options, strategy);
  check_places(options, strategy);
  const auto replicas = strategy.find("replicas_per_stage");
  if (!replicas) return;
  check_replicas(options, *replicas);
  if (std::ranges::max(options.stages.replicas) == 1) options.stages.replicas.clear();
}

bool has_stages(const Options& options) { return options.pipeline_ranks() > 1; }

}  // namespace

Strategy pipeline() {
  const auto of_stages = [](auto member) { return within(&Options::stages, member); };
  using S = StageOptions;
  const std::string apart = " stage, or as a stage of its own on all pipeline ranks or on one";
  using Named = Option<Options>;
  return {{Named{"pipeline", &Options::pipeline, whole(1),
                 "pipeline ranks: stages of consecutive layers, activations sent from stage to "
                 "stage"}
               .worth({1, 2, 4, 8, 16, 32, 64}),
           Named{"layers_per_stage", of_stages(&S::layers), list_of<int>(whole(0)),
                 "layers of every stage in order", "equally many"}
               .acting(&has_stages),
           {"replicas_per_stage", of_stages(&S::replicas), list_of<int>(whole(1)),
            "PipeDream's replicated stages: how often each stands on ranks of its own, to which "
            "micro-batches are dealt in turn (with " +
                schedules_that(&Schedule::takes_turns) + ")",
            "one each"},
           {"stage_order", of_stages(&S::places), list_of<int>(whole(0)),
            "the place of every pipeline rank among their GPUs: [0, 3, 1, 2] puts the second one "
            "last, beside those that fast links lead to; one place a GPU where ranks share GPUs",
            "in order"},
           Named{"embedding", of_stages(&S::embedding), end_of_model("first"),
                 "where the model's embeddings stand: in the first" + apart, "first"}
               .acting(&has_stages),
           Named{"head", of_stages(&S::head), end_of_model("last"),
                 "where the model's last segment stands: in the last" + apart, "last"}
               .acting(&has_stages),
           {"ranks_per_device", of_stages(&S::ranks_per_device), whole(1),
            "consecutive pipeline ranks that share the time and memory of one GPU"}},
          &assign_stages,
          &complete_stages,
          {.name = "pp",
           .size = [](const Options& o) { return o.pipeline_ranks() / o.stages.ranks_per_device; },
           .outermost = true}};
}

}  // namespace stratagem::strategies
