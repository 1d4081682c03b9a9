// What a search found, for people and for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "search/sweep.hpp"

namespace stratagem::report {

/// The best plans on a line each: time, where it goes, memory, what was chosen; below it how every
/// other combination was answered, and why the first plans are so fast, if they are explained.
std::string search_table(const search::Space& space, const search::Swept& swept, std::size_t best,
                         const std::vector<search::Explanation>& explained = {});

/// {schema, scenario, question, combinations, left_out, refused, too_large, not_better, simulated,
/// nearest, best, front_of_simulated}; the same bytes for the same answer. Its schema:
/// scenarios/schema/search_report.schema.json.
Json search_json(const search::Space& space, const search::Swept& swept, std::size_t best,
                 const std::vector<search::Explanation>& explained = {});

/// The best plans as runs of a scenario that is written into `folder`.
Json best_plans(const search::Space& space, const search::Swept& swept, std::size_t best,
                const std::string& folder);

}  // namespace stratagem::report
