// Predictions beside measurements, group by group, for people and for programs.
#pragma once

#include <string>

#include "base/json_writer.hpp"
#include "study/validation.hpp"

namespace stratagem::report {

/// Under each group's name its figures and verdicts, a line each; then, over all groups, the
/// statistics of each figure in each group, and the verdicts.
std::string validation_table(const study::Validation& validation);

/// The statistics and verdicts as Markdown, without the single figures.
std::string validation_summary(const study::Validation& validation);

/// {schema, groups: [{group, figures: [...], verdicts: [...], statistics: [...]}]}; times in s,
/// memory in bytes, errors as fractions.
Json to_json(const study::Validation& validation);

}  // namespace stratagem::report
