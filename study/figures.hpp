// The figures that a run of a scenario was measured to have, or is expected to have.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// The figures that can be measured of a run. Each is predicted for every run (see compare in
/// results.hpp).
inline const std::vector<std::string> figure_names = {
    "iteration_time", "tflops_per_gpu", "model_tflops_per_gpu", "scaling_efficiency", "speedup",
    "resident",       "peak_allocated", "peak_reserved",        "peak_used",          "fits"};

/// Does the figure concern memory, so that it exists even for a run that does not fit?
bool concerns_memory(const std::string& figure);

/// `"measured"` of a run: an object of figures by name. Throws InputError.
std::vector<Measured> read_measured(const JsonReader& reader);

/// `"expect"` of a run: bounds of figures by name. Throws InputError.
std::vector<Expectation> read_expectations(const JsonReader& reader);

}  // namespace stratagem::study
