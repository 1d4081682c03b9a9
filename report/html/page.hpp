// Reports as one HTML file that needs no other and no network.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "study/results.hpp"
#include "study/validation.hpp"

namespace stratagem::report {

/// What `simulate` predicts: runs compared, where time and memory go, scaling, and for each run its
/// `pictures`, an array of what picture() makes. The same bytes for the same results.
std::string simulated_page(const study::Scenario& scenario,
                           const std::vector<study::Result>& results, const Json& pictures);

/// What `search` found, from its JSON (search_json): the best plans for an objective ("time"), the
/// front of throughput and memory, and how all combinations were answered.
std::string searched_page(const std::string& question, const std::string& objective,
                          const Json& found);

/// What `validate` compares: errors by group and figure, predicted against measured, and rankings.
std::string validated_page(const study::Validation& validation);

}  // namespace stratagem::report
