// Ranks that measure together: what they must have in common, and how they fail together.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "calibrate/measure/machine.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::calibrate {

/// Thrown on the other ranks where one has failed, which says why.
struct AnotherRankFailed : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "another rank has failed"; }
};

/// Does `step` on all ranks and waits for all of them: where it throws on some rank, that exception
/// goes on there, and AnotherRankFailed on the others. A step must not communicate after what may
/// throw.
void together(kernels::Communicator& ranks, const std::function<void()>& step);

/// The same of a step that rank 0 does alone, such as writing a file.
void on_first(kernels::Communicator& ranks, const std::function<void()>& step);

/// What several ranks are together: this machine, with numbers of ranks, servers, and cores of the
/// smallest of them. Throws InputError on rank 0, and AnotherRankFailed on the others, where a rank
/// runs another program, was told other things (`arguments`), stands on another processor, or where
/// a server has more ranks than cores, which would take turns.
Machine machine_of(kernels::Communicator& ranks, const std::string& arguments);

}  // namespace stratagem::calibrate
