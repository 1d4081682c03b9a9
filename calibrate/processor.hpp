// What stands for the datasheet of a processor: its measurements, and what they leave open.
#pragma once

#include <string>

#include "calibrate/datasheet.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Of measurements that `calibrate measure --backend cpu` made: rates and memory as measured, one
/// core a rank. Constants of the formula for collectives are a first guess, `assumed`, which say
/// so: within a server measured times stand in its place (mpi_fit.hpp). Throws InputError for
/// measurements that it did not make: those of GPUs want a datasheet.
Datasheet datasheet_of_processor(const Measurements& measurements, const std::string& name);

}  // namespace stratagem::calibrate
