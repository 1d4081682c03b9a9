// Experiments of the sizes that the runs of a scenario have.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/cpu_kernels.hpp"
#include "calibrate/measure/experiment.hpp"
#include "cost/kernel.hpp"

namespace stratagem::calibrate {

struct ScenarioKernels {
  std::string name;  ///< of the scenario: its rows are one family
  std::vector<cost::Kernel> kernels;
};

/// In fp32, whatever the scenario's types. A product is measured in the three ways round that
/// layers have (NT, NN, TN), since its kernel does not tell which one it is. Of kernels that move
/// memory only bytes are known: every operation of the kind (and pass, where it is told) moves as
/// many, in rows of 1024 columns, and sizes within a tenth of each other are measured once. What
/// concerns the host and fused attention are left out. Each experiment once.
std::vector<Experiment> scenario_experiments(const ScenarioKernels& scenario,
                                             const SharedPool& pool);

}  // namespace stratagem::calibrate
