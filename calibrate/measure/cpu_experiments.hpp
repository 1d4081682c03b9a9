// What is measured of one core of a processor: the kernels of kernels/ in fp32.
#pragma once

#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/measure/cpu_kernels.hpp"
#include "calibrate/measure/experiment.hpp"

namespace stratagem::calibrate {

enum class Sweep { quick, full };

struct CpuExperiments {
  /// A large product, and a sum of operands as large as the cache, or an eighth of the working set:
  /// the rates that shares are taken of.
  Experiment peak, bandwidth;
  /// Matrix products of transformer layers, forward and backward, of widths and numbers of tokens
  /// that are and are not multiples of what vectors and tiles hold, and of attention heads; and
  /// every kind of kernel that moves memory, over sizes from well within the caches to well beyond
  /// them.
  std::vector<Experiment> all;
  SharedPool pool;  ///< of all operands
};

/// Operands are random and dealt in turn out of more than twice `cache` bytes, so that none is
/// still in a cache when its turn comes again; or out of a working set of so many bytes.
CpuExperiments cpu_experiments(Sweep sweep, Bytes cache,
                               std::optional<Bytes> working_set = std::nullopt);

}  // namespace stratagem::calibrate
