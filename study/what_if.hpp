// A machine that has more of one thing than it really has: `"what_if"` of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// Something of which a machine may have more.
struct Resource {
  std::string name;   ///< "network"
  std::string words;  ///< "the bandwidth of the network"
  /// Multiplies it by the factor; what is computed stays.
  void (*times)(Run& run, double factor);
  bool of_time = true;  ///< false: it does not change how long a run takes that fits
};

/// products          the peaks of matrix products and of fused attention
/// memory_bandwidth  of devices
/// memory            the size of devices' memory
/// links             within servers, except to drives and of processors' memory
/// network           ports, with them the cables between switches, and what was measured of both
/// launches          of kernels by the host
/// Latencies stay. Where a profile has measured times of collectives, faster links do not change
/// these.
const std::vector<Resource>& resources();

using Factors = std::vector<std::pair<const Resource*, double>>;

/// Factors by the resource's name: {"network": 2}. Throws InputError for what is not between 1e-6
/// and 1e6; other names are for the run to refuse, once it has been read.
Factors read_what_if(const JsonReader& json);

/// Makes the machine of a run so. Constants of its profile count as assumed from then on, and
/// Comparison::assumed names all factors. What was measured on the real one is left out.
void suppose(Run& run, const Factors& factors);

}  // namespace stratagem::study
