// TeraPipe's slices of a sequence, which follow each other from stage to stage.
#pragma once

#include <vector>

#include "study/least_times.hpp"

namespace stratagem::search {

/// A sequence of `grains` equal parts of tokens.
struct Slicing {
  int grains = 1;
  int stages = 1;
  int micro_batches = 1;
  /// By first grain and grain behind the last: the passes of such a slice on the slowest stage.
  std::vector<std::vector<study::Picoseconds>> times;
};

/// What an iteration takes: all slices of all micro-batches on one stage, and the longest of them
/// on each of the others.
study::Picoseconds time_of_slices(const Slicing& slicing, const std::vector<int>& ends);

/// The grain behind each slice, in order, such that time_of_slices is least. Source: Li et al.,
/// TeraPipe, ICML 2021, section 3.3, where the micro-batches of an iteration are given.
std::vector<int> best_slices(const Slicing& slicing);

}  // namespace stratagem::search
