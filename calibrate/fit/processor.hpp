// The datasheet of a processor, made from its measurements, and what they leave open.
#pragma once

#include <string>
#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Of measurements that `calibrate measure --backend cpu` made: rates and memory as measured, one
/// core a rank. Constants of the formula for collectives are a first guess, `assumed`, which say
/// so: within a server measured times stand in its place (mpi.hpp). Throws InputError for
/// measurements that it did not make: those of GPUs want a datasheet.
Datasheet datasheet_of_processor(const Measurements& measurements, const std::string& name);

/// A profile of one file or several that `calibrate measure --backend cpu` made of one processor:
/// the datasheet is the first one's, with the median of the products' rates of all and the best of
/// memory's. Where all of them say at which
/// pace each kernel was timed, they are taken to the common one (pace.hpp), which the profile then
/// names; else they are fitted as they are. Throws as datasheet_of_processor and fit_profile do,
/// and InputError for files of two processors; expects at least one file.
Fit fit_processor(std::vector<Measurements> measurements, const std::string& name);

}  // namespace stratagem::calibrate
