// How a searcher divides a run's model, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "base/json_writer.hpp"
#include "search/partition/searcher.hpp"
#include "search/partition/space_gap.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

/// A proposal, and the run with its own division and the proposed one, both simulated.
struct Partition {
  const study::Run& run;
  const search::Searcher& searcher;
  search::Proposal proposal;
  study::Outcome own;
  study::Outcome proposed;
  std::optional<search::SpaceGap> gap;  ///< if it was asked for
};

/// The parts on a line each, the keys that say them, and both simulations.
std::string partition_table(const Partition& partition);

/// {run, searcher, objective_s, strategy, parts, own, proposed, fastest}.
Json partition_json(const Partition& partition);

}  // namespace stratagem::report
