// How good the fits of profiles are, as tables for a document, beside what is asked of them.
#pragma once

#include <string>
#include <vector>

#include "cost/profile.hpp"

namespace stratagem::calibrate {

/// Markdown: what fits of kinds that several profiles share came to, once each: errors with
/// families of shapes left out, those of the best constant rate, and whether they meet their
/// target; then the medians by decade of size; then which profile rests on what. From what profiles
/// keep, without fitting anew. Targets: products of at least 100 GFLOP a median of 5 % and a 95th
/// percentile 30 % below that of the constant rate, smaller ones and kernels that move memory a
/// median of 15 and 10 %, collectives of 6 %.
std::string fit_table(const std::vector<cost::Profile>& profiles);

}  // namespace stratagem::calibrate
