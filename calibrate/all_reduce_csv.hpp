// Reads tables of measured all-reduces as nccl-tests' runs were collected: one line per size.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::calibrate {

/// An all-reduce of `size` bytes on the first `ranks` GPUs of a server, out of place.
struct NcclPoint {
  int ranks = 0;
  Bytes size;
  Seconds time;
};

/// The lines of `gpu` in a file with the header gpu,ranks,bytes,out_of_place_us,in_place_us. Throws
/// InputError, with the line, for another header or a line that is not of the form, and where there
/// is none of this GPU.
std::vector<NcclPoint> read_all_reduce_csv(const std::string& file, const std::string& gpu);

}  // namespace stratagem::calibrate
