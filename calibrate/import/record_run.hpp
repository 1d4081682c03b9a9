// One published record as one run of a scenario.
#pragma once

#include "base/json_writer.hpp"
#include "calibrate/import/record_rules.hpp"

namespace stratagem::calibrate {

/// The keys of a run, in the order in which they are written. Throws InputError at the record where
/// it lacks what a run needs, or contradicts itself.
std::vector<std::pair<std::string, Json>> run_of(const JsonReader& record, const Ruling& ruling);

}  // namespace stratagem::calibrate
