// The results of a scenario as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "study/answers.hpp"
#include "study/results.hpp"

namespace stratagem::report {

/// How much is told of what predictions rest on.
enum class Sources { in_one_line, in_full };

/// Is there a measured figure of any run?
bool any_measured(const std::vector<study::Result>& results);

/// Every run on a line of at most 120 columns (if names are short), under the headings of its
/// groups; measured figures beside predicted ones, or, where nothing was measured, what answers the
/// question (report/answer_rows.hpp); below it a legend, what the runs assume, and what the
/// predictions rest on.
std::string table(const study::Scenario& scenario, const std::vector<study::Result>& results,
                  Sources sources = Sources::in_one_line);

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
