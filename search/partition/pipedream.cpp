// Divides rows and workers from the last stage to the first.
#include "search/partition/pipedream.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "cost/collectives.hpp"
#include "search/partition/all_sums.hpp"
#include "search/partition/searcher.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "strategies/schedules/all.hpp"
#include "study/scenario.hpp"

namespace stratagem::search {
namespace {

using study::Picoseconds;

/// The best end of a division, from a row and a worker on.
struct End {
  std::int64_t worth = std::numeric_limits<std::int64_t>::max();  ///< less is better
  int to = 0;                                                     ///< of its first stage
  int replicas = 0;
};

/// All divisions of rows among workers, whose stages cost what `cost` says, if they may be at all:
/// those whose costs, put together by `join`, are least.
template <typename Cost, typename Join>
std::optional<std::vector<ReplicatedStage>> least(const Rows& rows, int workers, const Cost& cost,
                                                  const Join& join) {
  const auto count = static_cast<int>(rows.rows.size());
  std::vector<std::vector<End>> ends(count + 1, std::vector<End>(workers + 1));
  ends[count][workers].worth = 0;
  const auto consider = [&](int from, int first, int to, int replicas) {
    const End& behind = ends[to][first + replicas];
    if (behind.replicas == 0 && to < count) return;
    if (behind.worth == std::numeric_limits<std::int64_t>::max()) return;
    const std::optional<std::int64_t> own = cost(from, to, first, replicas);
    if (!own) return;
    const std::int64_t worth = join(*own, behind.worth);
    if (worth < ends[from][first].worth) ends[from][first] = {worth, to, replicas};
  };
  for (int from = count - 1; from >= 0; --from) {
    for (int first = workers - 1; first >= 0; --first) {
      for (int to = count; to > from; --to) {
        for (int replicas = 1; replicas <= workers - first; ++replicas)
          consider(from, first, to, replicas);
      }
    }
  }
  if (ends[0][0].replicas == 0) return std::nullopt;
  std::vector<ReplicatedStage> stages;
  for (int row = 0, worker = 0; row < count;) {
    const End& end = ends[row][worker];
    stages.push_back({.end = end.to, .replicas = end.replicas});
    row = end.to;
    worker += end.replicas;
  }
  return stages;
}

/// What a run's links take.
class Links {
 public:
  explicit Links(const study::Run& run)
      : run_(run), collectives_(run.cluster, run.profile.collective, run.stack.nccl) {}

  Picoseconds sums(int first, int workers, Bytes gradients) {
    std::vector<int> ranks;
    for (int worker = first; worker < first + workers; ++worker) {
      for (int data = 0; data < run_.options.data; ++data)
        ranks.push_back(worker * stride_of(run_.options, "pp") +
                        data * stride_of(run_.options, "dp"));
    }
    if (ranks.size() == 1 || gradients <= Bytes{}) return 0;
    std::ranges::sort(ranks);
    return time(cost::CollectiveKind::all_reduce, ranks, gradients);
  }

  Picoseconds sends(int first, Bytes payload) {
    const int stride = stride_of(run_.options, "pp");
    return time(cost::CollectiveKind::send, {(first - 1) * stride, first * stride}, payload);
  }

 private:
  Picoseconds time(cost::CollectiveKind kind, const std::vector<int>& ranks, Bytes payload) {
    const auto [known, added] = times_.try_emplace({kind, ranks, payload.value});
    if (added) {
      const cost::Route route = collectives_.route(kind, ranks, payload);
      known->second = sim::to_ticks(collectives_.alone(route, payload)).count;
    }
    return known->second;
  }

  const study::Run& run_;
  cost::Collectives collectives_;
  std::map<std::tuple<cost::CollectiveKind, std::vector<int>, double>, Picoseconds> times_;
};

/// With as many stages as there are workers.
study::Run one_worker_each(const study::Run& run) {
  const std::vector<int> ones(run.options.pipeline_ranks(), 1);
  return study::with_settings(
      run, Json::object().set("strategy", Json::object()
                                              .set("pipeline", run.options.pipeline_ranks())
                                              .set("replicas_per_stage", list_of(ones))));
}

Json settings(const std::vector<int>& layers, const std::vector<int>& replicas) {
  return Json::object()
      .set("pipeline", static_cast<int>(layers.size()))
      .set("layers_per_stage", list_of(layers))
      .set("replicas_per_stage", list_of(replicas));
}

void refuse_without_turns(const study::Run& run) {
  using strategies::Schedule;
  if (run.plan) throw InputError("", "/plan", "a strategy with stages of layers", "a plan file");
  if (!run.options.stages.places.empty())
    throw InputError("", "/strategy/stage_order", "ranks that stand in order", "another order");
  if (!strategies::schedule_named(run.options.schedule).takes_turns) {
    throw InputError(
        "", "/strategy/schedule",
        "one in which replicas take turns: " + strategies::schedules_that(&Schedule::takes_turns),
        run.options.schedule);
  }
}

std::optional<Proposal> replicated_proposal(const study::Run& asked) {
  refuse_without_turns(asked);
  const study::Run run = one_worker_each(asked);
  const Rows rows = rows_of(run);
  Links links(run);
  const Workers workers{
      .count = run.options.pipeline,
      .sums = [&](int first, int n, Bytes bytes) { return links.sums(first, n, bytes); },
      .sends = [&](int first, Bytes bytes) { return links.sends(first, bytes); }};
  const auto stages = replicated_stages(rows, workers);
  if (!stages) return std::nullopt;
  const auto all = joined(rows.rows);
  const int versions = std::ranges::max(rows.versions);
  Proposal result;
  std::vector<int> counts, replicas;
  int from = 0, first = 0;
  for (const ReplicatedStage& stage : *stages) {
    const Row& own = all[from][stage.end];
    const bool last = stage.end == static_cast<int>(rows.rows.size());
    const Seconds time =
        sim::to_seconds(sim::Ticks{time_of_stage(rows, workers, own, first, stage.replicas, last)});
    const int waiting = in_flight(rows, workers.count - first, stage.replicas);
    counts.push_back(own.layers);
    replicas.push_back(stage.replicas);
    result.objective = std::max(result.objective, time);
    result.parts.push_back({.what = words(rows.rows, from, stage.end),
                            .replicas = stage.replicas,
                            .time = time,
                            .memory = needs(own, {{.backward = waiting}}, versions)});
    from = stage.end;
    first += stage.replicas;
  }
  result.strategy = settings(counts, replicas);
  return result;
}

std::vector<Json> every_replication(const study::Run& run, std::size_t most) {
  const auto layers = static_cast<int>(model::layers(*run.graph).size());
  const int workers = run.options.pipeline_ranks();
  std::vector<Json> all;
  for (int stages = 1; stages <= workers; ++stages) {
    std::vector<int> least(stages, 1);
    if (stages > 1) least.front() = least.back() = 0;
    const auto replicas = all_sums(workers, std::vector<int>(stages, 1), most);
    for (const std::vector<int>& counts : all_sums(layers, least, most)) {
      for (const std::vector<int>& one : replicas) all.push_back(settings(counts, one));
      if (all.size() > most) throw too_many_divisions(most);
    }
  }
  return all;
}

}  // namespace

study::Picoseconds time_of_stage(const Rows& rows, const Workers& workers, const Row& stage,
                                 int first, int replicas, bool last) {
  const std::int64_t turns = rows.micro_batches / replicas;
  const Picoseconds own = turns * stage.time + workers.sums(first, replicas, stage.gradients);
  if (last) return own;
  return std::max(own, 2 * turns * workers.sends(first + replicas, stage.passes_on));
}

int in_flight(const Rows& rows, int workers, int replicas) {
  return std::min(rows.micro_batches / replicas, (workers + replicas - 1) / replicas);
}

std::optional<std::vector<ReplicatedStage>> replicated_stages(const Rows& rows,
                                                              const Workers& workers) {
  using Cost = std::optional<std::int64_t>;
  const auto all = joined(rows.rows);
  const int versions = std::ranges::max(rows.versions);
  const auto count = static_cast<int>(rows.rows.size());
  const auto time = [&](int from, int to, int first, int replicas) -> Cost {
    if (rows.micro_batches % replicas != 0) return std::nullopt;
    const int waiting = in_flight(rows, workers.count - first, replicas);
    const Row& stage = all[from][to];
    if (needs(stage, {{.backward = waiting}}, versions) > rows.room) return std::nullopt;
    return time_of_stage(rows, workers, stage, first, replicas, to == count);
  };
  const auto slower = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  const auto fastest = least(rows, workers.count, time, slower);
  if (!fastest) return std::nullopt;
  std::int64_t slowest = 0;
  int from = 0, first = 0;
  for (const ReplicatedStage& stage : *fastest) {
    slowest = std::max(slowest, *time(from, stage.end, first, stage.replicas));
    from = stage.end;
    first += stage.replicas;
  }
  const auto one_more = [&](int begin, int to, int at, int replicas) -> Cost {
    const Cost own = time(begin, to, at, replicas);
    return own && *own <= slowest ? Cost(1) : std::nullopt;
  };
  return least(rows, workers.count, one_more, std::plus<>());
}

Searcher pipedream() {
  return {
      "pipedream",
      "replicas_per_stage",
      "stage",
      "an iteration's passes and sums of gradients, or its messages, of the slowest stage; then "
      "the number of stages",
      &replicated_proposal,
      &every_replication};
}

}  // namespace stratagem::search
