// The results of a scenario as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "study/answers.hpp"
#include "study/results.hpp"

namespace stratagem::report {

/// Every run on a line of at most 120 columns (if names are short), under the headings of its
/// groups; measured figures beside predicted ones; below it a legend, what the runs assume, and the
/// weakest constants used.
std::string table(const study::Scenario& scenario, const std::vector<study::Result>& results);

/// What was measured beside what is predicted, with sources, as a Markdown table; "" where nothing
/// was.
std::string accuracy(const std::vector<study::Result>& results);

/// {schema, scenario, question, runs: [...]}; the same bytes for the same results. Its schema:
/// scenarios/schema/report.schema.json. Throughput and efficiency follow from the metrics; a
/// refused run has none.
Json to_json(const study::Scenario& scenario, const std::vector<study::Result>& results);
/// The same with "workflows", if there are any.
Json to_json(const study::Scenario& scenario, const study::Answers& answers);

}  // namespace stratagem::report
