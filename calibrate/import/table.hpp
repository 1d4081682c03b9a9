// Measurements from a CSV that anybody can write: docs/guide/measurements.md describes it.
#pragma once

#include <string>
#include <vector>

#include "calibrate/datasheet.hpp"

namespace stratagem::calibrate {

/// The text of a file of measurements of the datasheet's GPU, with a table for each CSV: products,
/// kernels that move memory, or kernel gaps. It has been read once as read_measurements does.
/// Throws InputError, with the line and the column, for anything that is not of the format; a CSV
/// that ends before the number of rows that it promises is refused, as are a shape that stands
/// there twice and times that would take more than 1.2 times the datasheet's peak or, of what no
/// cache holds, its memory bandwidth.
std::string import_tables(const std::vector<std::string>& files, const Datasheet& sheet);

}  // namespace stratagem::calibrate
