// All ways to divide a number.
#pragma once

#include <cstddef>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::search {

/// What spaces say that have more divisions.
InputError too_many_divisions(std::size_t most);

/// All sequences of numbers that add up to `total`, each at least what `least` says at its place.
/// Throws InputError if there are more than `most`.
std::vector<std::vector<int>> all_sums(int total, const std::vector<int>& least, std::size_t most);

}  // namespace stratagem::search
