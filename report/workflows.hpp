// Workflows as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "study/workflow/outcome.hpp"

namespace stratagem::report {

/// Each workflow's phases, a line each, then the memory of its pools in words.
std::string workflow_text(const std::vector<study::WorkflowOutcome>& workflows);

/// [{name, gpus, time_s, fits, phases: [...], pools: [...]}], or of one that is refused name and
/// reason.
Json to_json(const std::vector<study::WorkflowOutcome>& workflows);

}  // namespace stratagem::report
