// Detects losses that are NaN or infinite, and the task that made the first such value.
#pragma once

#include <string>

#include "execute/current_task.hpp"
#include "execute/engine.hpp"
#include "execute/fault.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::execute {

/// NaN or infinity in the loss. All ranks throw the same, right after they have met: what() names
/// iteration, rank, task and micro-batch as far as they are known.
struct NotFinite : Fault {
  using Fault::Fault;
};

/// Remembers the first task of a rank of which a result is not finite. It reads all results: for
/// checks, not for iterations that are timed.
class FiniteCheck {
 public:
  template <typename T>
  void look(Engine<T>& engine, const Application<T>& application, const CurrentTask& current);

  /// What NotFinite says. Called on all ranks, which get the same: of ranks that have seen a task
  /// make such a value out of numbers, or out of a parameter that is none, the first one; else the
  /// first that has met one at all.
  [[nodiscard]] std::string told(kernels::Communicator& world, double loss,
                                 std::uint64_t iteration) const;

 private:
  std::string first_;    ///< empty: all have been finite
  bool arises_ = false;  ///< there, rather than in what another rank has sent
};

}  // namespace stratagem::execute
