// For each limit of a slice's time the shortest sum of slices within it.
#include "search/partition/terapipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/outline.hpp"
#include "search/partition/all_sums.hpp"
#include "search/partition/searcher.hpp"
#include "search/partition/slowest.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::search {
namespace {

using study::Picoseconds;
constexpr Picoseconds unreached = std::numeric_limits<Picoseconds>::max();

/// The shortest sum of slices none of which takes longer than `limit`; nothing if there is none.
std::vector<int> shortest_sum(const Slicing& slicing, Picoseconds limit) {
  std::vector<Picoseconds> best(slicing.grains + 1, unreached);
  std::vector<int> from(slicing.grains + 1);
  best[0] = 0;
  for (int to = 1; to <= slicing.grains; ++to) {
    for (int begin = 0; begin < to; ++begin) {
      const Picoseconds own = slicing.times[begin][to];
      if (own > limit || best[begin] == unreached || best[begin] + own >= best[to]) continue;
      best[to] = best[begin] + own;
      from[to] = begin;
    }
  }
  std::vector<int> ends;
  if (best.back() == unreached) return ends;
  for (int to = slicing.grains; to > 0; to = from[to]) ends.insert(ends.begin(), to);
  return ends;
}

/// Times of slices on the slowest stage, by first token and token behind the last, of one
/// micro-batch.
class SliceTimes {
 public:
  explicit SliceTimes(const study::Run& run) : run_(run), tokens_(run.batch.sequence) {}

  Picoseconds of(std::int64_t from, std::int64_t to) {
    if (!times_.contains({from, to})) measure(from, to);
    return times_.at({from, to});
  }

 private:
  void measure(std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> slices;
    std::vector<std::pair<std::int64_t, std::int64_t>> ends;
    for (const auto& [first, end] :
         {std::pair<std::int64_t, std::int64_t>{0, from}, {from, to}, {to, tokens_}}) {
      if (first == end) continue;
      slices.push_back(end - first);
      ends.emplace_back(first, end);
    }
    const study::Run run = study::with_settings(
        run_, Json::object()
                  .set("strategy", Json::object().set("token_slices", list_of(slices)))
                  .set("training",
                       Json::object().set("global_batch", run_.batch.micro * run_.batch.ranks)));
    const lowering::Outline outline =
        lowering::outline(study::plan_of(run), run.stack, run.training);
    const auto by_slice =
        slowest(run, outline,
                [](const lowering::OutlinedCell& cell, std::size_t) { return cell.cell.slice; });
    for (const auto& [slice, time] : by_slice) {
      Picoseconds& known = times_[ends[slice]];
      known = std::max(known, time);
    }
  }

  const study::Run& run_;
  std::int64_t tokens_;
  std::map<std::pair<std::int64_t, std::int64_t>, Picoseconds> times_;
};

/// The most equal parts of a sequence, up to 16.
int grains_of(std::int64_t tokens) {
  int grains = 1;
  for (int many = 2; many <= 16; ++many) {
    if (tokens % many == 0) grains = many;
  }
  return grains;
}

Slicing slicing_of(const study::Run& run) {
  Slicing result{.grains = grains_of(run.batch.sequence),
                 .stages = run.options.pipeline,
                 .micro_batches = run.batch.micro_batches};
  const std::int64_t grain = run.batch.sequence / result.grains;
  SliceTimes times(run);
  result.times.assign(result.grains, std::vector<Picoseconds>(result.grains + 1));
  for (int from = 0; from < result.grains; ++from) {
    for (int to = from + 1; to <= result.grains; ++to)
      result.times[from][to] = times.of(from * grain, to * grain);
  }
  return result;
}

std::optional<Proposal> sliced_proposal(const study::Run& run) {
  if (run.plan) {
    throw InputError(run.origin.file, "/plan", "a strategy, whose tokens can be sliced",
                     "a plan file");
  }
  const Slicing slicing = slicing_of(run);
  const std::int64_t grain = run.batch.sequence / slicing.grains;
  const std::vector<int> ends = best_slices(slicing);
  Proposal result;
  std::vector<std::int64_t> slices;
  int from = 0;
  for (const int to : ends) {
    slices.push_back((to - from) * grain);
    result.parts.push_back({.what = fmt::format("tokens {}-{}", from * grain, to * grain - 1),
                            .time = sim::to_seconds(sim::Ticks{slicing.times[from][to]})});
    from = to;
  }
  result.strategy = Json::object().set("token_slices", list_of(slices));
  result.objective = sim::to_seconds(sim::Ticks{time_of_slices(slicing, ends)});
  return result;
}

std::vector<Json> every_slicing(const study::Run& run, std::size_t most) {
  const int grains = grains_of(run.batch.sequence);
  const std::int64_t grain = run.batch.sequence / grains;
  std::vector<Json> all;
  for (int count = 1; count <= grains; ++count) {
    for (const std::vector<int>& sums : all_sums(grains, std::vector<int>(count, 1), most)) {
      std::vector<std::int64_t> slices;
      for (const int one : sums) slices.push_back(one * grain);
      all.push_back(Json::object().set("token_slices", list_of(slices)));
    }
    if (all.size() > most) throw too_many_divisions(most);
  }
  return all;
}

}  // namespace

Picoseconds time_of_slices(const Slicing& slicing, const std::vector<int>& ends) {
  Picoseconds sum = 0, longest = 0;
  int from = 0;
  for (const int to : ends) {
    sum += slicing.times[from][to];
    longest = std::max(longest, slicing.times[from][to]);
    from = to;
  }
  return slicing.micro_batches * sum + (slicing.stages - 1) * longest;
}

std::vector<int> best_slices(const Slicing& slicing) {
  std::set<Picoseconds> limits;
  for (int from = 0; from < slicing.grains; ++from) {
    for (int to = from + 1; to <= slicing.grains; ++to) limits.insert(slicing.times[from][to]);
  }
  std::vector<int> best;
  for (const Picoseconds limit : limits) {
    std::vector<int> ends = shortest_sum(slicing, limit);
    if (ends.empty()) continue;
    if (best.empty() || time_of_slices(slicing, ends) < time_of_slices(slicing, best))
      best = std::move(ends);
  }
  return best;
}

Searcher terapipe() {
  return {"terapipe",
          "token_slices",
          "slice",
          "all slices of all micro-batches on the slowest stage, and the longest slice on each of "
          "the others",
          &sliced_proposal,
          &every_slicing};
}

}  // namespace stratagem::search
