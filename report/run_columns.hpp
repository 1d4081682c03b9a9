// Columns of one's choice about runs, as a table and as CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/results.hpp"

namespace stratagem::report {

/// A figure of a run.
struct RunColumn {
  std::string name;     ///< as --columns and the CSV's head have it: "tokens_per_s"
  std::string heading;  ///< of the table
  /// None for a run that does not fit, unless it is about memory, or where it has no meaning.
  std::optional<double> (*value)(const study::Result& result);
  std::string (*text)(double value);
};

/// All of them. Times in s, memory in bytes, rates in TFLOP/s, shares from 0 to 1, cost in the
/// currency of the cluster's price per billion tokens.
const std::vector<RunColumn>& run_columns();

/// The line of headings, and one for each run, which has this name there, with these columns. A
/// time is marked where successive iterations still differ.
std::vector<std::string> rows_of(const std::vector<study::Result>& results,
                                 const std::vector<std::string>& names,
                                 const std::vector<const RunColumn*>& columns);

/// The same lines; below, why runs are refused or do not fit.
std::string table_of(const std::vector<study::Result>& results,
                     const std::vector<const RunColumn*>& columns);

/// All columns of all runs, in full digits; names in quotes.
std::string csv_of(const std::vector<study::Result>& results);

}  // namespace stratagem::report
