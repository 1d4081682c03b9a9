// The figures that a run of a scenario was measured to have, or is expected to have.
#pragma once

#include <vector>

#include "base/json_reader.hpp"
#include "study/scenario.hpp"

namespace stratagem::study {

/// `"measured"` of a run: an object of figures by name. Throws InputError.
std::vector<Measured> read_measured(const JsonReader& reader);

/// `"expect"` of a run: bounds of figures by name. Throws InputError.
std::vector<Expectation> read_expectations(const JsonReader& reader);

}  // namespace stratagem::study
