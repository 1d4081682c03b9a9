// Finds the best plans of a space, and proves that no other is better.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "search/space.hpp"
#include "search/trial.hpp"
#include "study/bounds.hpp"
#include "study/gains.hpp"
#include "study/simulate.hpp"

namespace stratagem::search {

/// What is best: less is better.
///   time    the iteration's
///   cost    time x GPUs
///   memory  of the fullest GPU
enum class Objective { time, cost, memory };

struct SweepOptions {
  Objective objective = Objective::time;
  std::size_t best = 10;  ///< plans that are found and ordered for certain
  int threads = 1;        ///< the answer does not depend on their number
  Others others = {};     ///< who is asked first; nor on who they are, and what they know
};

/// A plan that was simulated.
struct Answer {
  std::size_t number = 0;  ///< of its combination
  Json settings;           ///< as Space::settings, with what searchers found
  study::Bounds bounds;
  Trial trial;
};

/// Combinations that are refused for alike reasons.
struct Refused {
  std::string reason;  ///< of the first; the others differ in numbers only
  std::size_t combinations = 0;
};

/// Every combination of the space is counted once: left_out + refused + too_large + not_better +
/// answers.
struct Swept {
  std::size_t combinations = 0;
  std::size_t left_out = 0;                ///< as Space::leaves_out
  std::map<std::string, Refused> refused;  ///< by reason without numbers
  std::size_t too_large = 0;  ///< a lower bound of memory, or the simulation, does not fit
  /// A lower bound of the objective is above that of the last of the best.
  std::size_t not_better = 0;
  std::size_t simulated = 0;  ///< among `answers` and `too_large`
  /// Of those that are too large: the one that lacks least, how much, and of what.
  std::size_t nearest = 0;
  Json nearest_settings;
  Bytes nearest_lacks;
  std::string nearest_reason;
  /// All that fit, best first; of equals the first combination. The first `best` of them are the
  /// best of the space.
  std::vector<Answer> answers;
};

/// What is known so far.
struct Progress {
  std::size_t bounded = 0;  ///< combinations whose bounds are known
  std::size_t combinations = 0;
  std::size_t simulated = 0;
  std::size_t candidates = 0;       ///< at most so many are left to be simulated
  const Answer* leading = nullptr;  ///< the best so far
};

/// How far it is: "combinations bounded", or "plans simulated at most", of so many.
struct Steps {
  std::string words;
  std::size_t done = 0;
  std::size_t all = 0;
};
/// First all combinations are bounded. The bounds then limit how many are simulated.
Steps steps(const Progress& now);

/// Bounds all combinations, then takes them in the order of their bounds until the next bound is
/// above the objective of the last of the best: what is left cannot be better. Eight take their
/// turn together: each gets its program, which bounds its time more closely. One that is then above
/// the next outside the eight waits for another turn; the others are simulated. For the least
/// memory none waits. Throws InputError for what is wrong with the form of the scenario.
Swept sweep(const Space& space, const SweepOptions& options,
            const std::function<void(const Progress&)>& report = {});

/// A plan, simulated once more, and what it would gain from more of each thing.
struct Explanation {
  study::Outcome outcome;
  std::vector<study::Gain> gains;
};
/// Of the first `count` answers.
std::vector<Explanation> explain(const Space& space, const Swept& swept, std::size_t count,
                                 int threads);

/// Answers that no other beats in time, memory and GPUs together, by time.
std::vector<const Answer*> front(const std::vector<Answer>& answers);

}  // namespace stratagem::search
