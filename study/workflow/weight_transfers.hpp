// Which phases of a workflow wait for weights that another phase has trained.
#pragma once

#include <vector>

#include "study/workflow/simulated_phase.hpp"

namespace stratagem::study {

/// If a phase trains a model, the other phases of that model get its new weights. A phase that
/// divides the model differently on the pool that trains it makes a copy for as long as it runs;
/// another pool has a copy all the time. Both wait for the transfer: every phase of the first kind,
/// and on another pool the first phase. Throws InputError where phases of one name of weights have
/// different models, where two phases train one that divide it differently or are on different
/// pools, and where nobody trains a model that phases of one pool divide differently.
void add_weight_transfers(std::vector<SimulatedPhase>& phases);

}  // namespace stratagem::study
