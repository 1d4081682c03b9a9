// Measured against fitted times, for people: as text, and as a page of its own.
#pragma once

#include <string>

#include "calibrate/fit/fit.hpp"

namespace stratagem::calibrate {

/// describe(fit), then for every fit a scatter of logarithms and the shapes that its constants
/// predict worst.
std::string text_report(const Fit& fit);

/// One HTML page without scripts or other files: for every fit its errors, and an SVG of fitted
/// over measured times in logarithmic scales; hovering over a point tells its shape.
std::string html_report(const Fit& fit);

}  // namespace stratagem::calibrate
