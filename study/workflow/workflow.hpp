// Phases of several models that make one training step, such as those of RLHF.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// A run of the scenario as a part of a workflow.
struct Phase {
  std::string name;
  const Run* run = nullptr;
  std::string weights;    ///< name of the model whose parameters it reads or trains
  std::string pool;       ///< name of the GPUs that it runs on
  int repeat = 1;         ///< times that it runs, one after another
  int answer_tokens = 0;  ///< of each sample, how many it generates one by one; 0: none
  JsonReader json;        ///< where it was read
};

/// Each step begins when all phases of the one before have ended. Its phases run beside each other
/// if they are on different pools, and in turn on the same one.
struct Workflow {
  std::string name;
  std::vector<std::vector<Phase>> steps;
};

/// The workflows of a scenario, which must outlive them. Throws InputError for a phase of a run
/// that the scenario lacks, for names that appear twice, for a generation of more tokens than the
/// run has or with stages, and for pools whose runs have different GPUs.
std::vector<Workflow> read_workflows(const Scenario& scenario);

/// Do only generations use a run? Their passes have other lengths than it says.
bool only_generates(const Run& run, const std::vector<Workflow>& workflows);

}  // namespace stratagem::study
