// What is found out about one combination of a space: its bounds, or what a simulation says.
#pragma once

#include <cstddef>
#include <optional>
#include <semaphore>
#include <string>

#include "base/quantity.hpp"
#include "search/crew.hpp"
#include "search/space.hpp"
#include "search/store.hpp"
#include "study/bounds.hpp"
#include "study/simulate.hpp"

namespace stratagem::search {

/// A combination that is no plan says why; of others the bounds are known.
struct Bounded {
  study::Bounds bounds;
  int gpus = 0;
  Bytes lacks;                        ///< of the GPU's memory
  std::optional<Json> settings = {};  ///< with what searchers found, if any were asked
  bool left_out = false;              ///< as Space::leaves_out
  bool read = false;                  ///< have all settings been read, now?
  std::string refused = {};           ///< the reason, if it is no plan
};

/// A plan that was simulated, or that is known to be of no use without.
struct Trial {
  study::Outcome::Status status = study::Outcome::Status::ok;
  std::string reason;  ///< why it is refused, or does not fit
  bool simulated = false;
  Bytes lacks;  ///< of all memories together, if it does not fit
  int gpus = 0;
  Bytes memory;        ///< used of the fullest GPU
  bool tight = false;  ///< as study::Outcome::tight
  Seconds at_least;    ///< an iteration, of one that is too long to be simulated
  // Of one that was simulated:
  Seconds iteration_time;
  Seconds exposed_communication;
  double bubble_fraction = 0;
  FlopsPerSecond model_rate;  ///< of each GPU
  bool steady = false;
};

/// Who is asked before this process sets to work.
struct Others {
  Store* store = nullptr;  ///< first; it is told what it did not know
  Crew* crew = nullptr;    ///< whoever of it is free
  /// Of this process: questions that it answers itself at the same time.
  std::counting_semaphore<>* turns = nullptr;
};

/// Throws MalformedInput, and InputErrors of files other than the scenario.
Bounded bounded(const Space& space, std::size_t number, const Others& others = {});
/// With `no_longer_than` as study::SimulateOptions has it.
Trial tried(const Space& space, const Json& settings, std::optional<Seconds> no_longer_than,
            const Others& others = {});

/// What a member of another search's crew says to a question of one of these two. Throws what they
/// throw.
std::string answer(const Space& space, const std::string& question);

/// All that bounds and trials of a space depend on beside its settings: this program, the defaults
/// and the bytes of the files that these name.
std::string context_of(const Space& space);

}  // namespace stratagem::search
