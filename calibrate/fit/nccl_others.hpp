// Compares measured collectives other than all-reduces with NCCL's model.
#pragma once

#include <string>

#include "calibrate/measurements.hpp"
#include "cost/collectives.hpp"

namespace stratagem::calibrate {

/// How long a collective of the first `ranks` GPUs takes alone, NcclLog::Row's `size` being its
/// payload; a send is of every rank to the next one, all at once.
Seconds predict_alone(cost::Collectives& collectives, cost::CollectiveKind kind, int ranks,
                      Bytes size);

/// Per number of ranks and size, the predicted over the measured time less 1 in percent. Nothing is
/// fitted: the prediction is NCCL's own, uncorrected.
std::string describe_others(const NcclTable& table);

}  // namespace stratagem::calibrate
