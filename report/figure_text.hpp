// Figures and their errors in words, the same in every report.
#pragma once

#include <string>
#include <vector>

#include "study/results.hpp"

namespace stratagem::report {

/// With its unit: "1.807 s", "39.0 TFLOP/s", "95.0 %", "1.64 x", "29.31 GB"; "yes" or "no" where it
/// fits or not.
std::string value_text(const std::string& figure, double value);

/// "+22.5 %" of the measured value, "+5.3 pt" for efficiencies, "right" or "wrong" for what fits;
/// empty without a prediction or a
/// measurement.
std::string error_text(const study::Figure& figure);

/// Why a run is refused, in one line or several: "  refused: /runs/1/strategy: expected ...". The
/// file is named only if it is not the scenario's.
std::string refusal_text(const study::Result& result);

/// What efficiencies are relative to: `"1f1b"`, or "the baseline" where runs have several; "" where
/// they have none.
std::string baseline_in_words(const std::vector<study::Result>& results);

}  // namespace stratagem::report
