// How far a searcher's proposal is from the fastest division of its space.
#pragma once

#include <cstddef>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "search/partition/searcher.hpp"
#include "study/run.hpp"

namespace stratagem::search {

struct SpaceGap {
  std::size_t divisions = 0;
  Json fastest;            ///< keys of the strategy; the proposal's own if none is faster
  Seconds iteration_time;  ///< with it
};

/// Simulates all divisions that are not surely slower than the proposal, which takes `proposed`.
/// Does not depend on `threads`. Throws InputError for spaces of more than 32,768 divisions.
SpaceGap space_gap(const study::Run& run, const Searcher& searcher, const Proposal& proposal,
                   Seconds proposed, int threads);

}  // namespace stratagem::search
