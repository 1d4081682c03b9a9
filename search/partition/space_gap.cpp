// Simulates one division after another.
#include "search/partition/space_gap.hpp"

#include <vector>

#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::search {
namespace {

/// The iteration time with a division; `limit` where it is no plan, does not fit or takes longer.
Seconds time_with(const study::Run& run, const Json& strategy, Seconds limit) {
  try {
    const study::Run divided = study::with_settings(run, Json::object().set("strategy", strategy));
    const study::Outcome outcome =
        study::simulate(divided, {.memory_first = true, .no_longer_than = limit}).outcome;
    const bool ok = outcome.status == study::Outcome::Status::ok && outcome.metrics;
    return ok ? outcome.metrics->iteration_time : limit;
  } catch (const InputError&) {
    return limit;
  }
}

}  // namespace

SpaceGap space_gap(const study::Run& run, const Searcher& searcher, const Proposal& proposal,
                   Seconds proposed, int threads) {
  constexpr std::size_t most = 32'768;  // a sequence in 16 parts
  const std::vector<Json> all = searcher.all(run, most);
  std::vector<Seconds> times(all.size());
  for_each_index(all.size(), threads,
                 [&](std::size_t i) { times[i] = time_with(run, all[i], proposed); });
  SpaceGap result{
      .divisions = all.size(), .fastest = proposal.strategy, .iteration_time = proposed};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (times[i] >= result.iteration_time) continue;
    result.fastest = all[i];
    result.iteration_time = times[i];
  }
  return result;
}

}  // namespace stratagem::search
