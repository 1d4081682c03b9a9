// Times something: warm-up, repeats, and a median with its confidence.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::calibrate {

/// By the steady clock, from some instant in the past.
Seconds now();

/// When to stop repeating.
struct Effort {
  Seconds budget{0.5};       ///< no repeat starts after so much time, warm-up included
  double confidence = 0.02;  ///< or once the median is known this well, relative
  int warm_up = 2;
  int least = 7;  ///< repeats, whatever they take; below 6 no interval holds a median with 95 %
  Seconds shortest{20e-6};  ///< of one sample: quicker work is done several times over
};

struct Timed {
  Seconds median;
  double spread = 0;  ///< half the 95 % confidence interval of the median, relative to it
  int repeats = 0;
  /// Of the slowest core meanwhile (kernels/core_speed.hpp): the median over it is the median of
  /// the samples, each over the pace before and after it. 0: not asked for.
  Seconds pace;
};

/// Times `work` by the steady clock, and looks at the core's pace every 20 ms, or around each
/// sample that is longer.
Timed time_of(const std::function<void()>& work, const Effort& effort);

/// The same on several ranks at once, each of which does its own work: all begin every sample
/// together, as they look at their paces, and go on until all know their medians. The slowest
/// rank's median counts, on all ranks.
Timed time_of(const std::function<void()>& work, const Effort& effort,
              kernels::Communicator& ranks);

/// Times one collective of all or some ranks at a time, the same on all ranks: from the moment that
/// the last rank begins until the last one is done. That wants one clock, which ranks of one server
/// have (`one_clock`); else the longest that any rank was in it counts, waiting included. Ranks
/// that have no part in it do nothing. Rounds begin behind a barrier; `effort.shortest` means
/// nothing.
Timed time_of_collective(const std::function<void()>& work, const Effort& effort,
                         kernels::Communicator& ranks, bool one_clock);

/// The median of rounds of samples, each round the same on all ranks, until it is known well enough
/// or the budget of any rank is spent: the same on all.
Timed time_of_rounds(const std::function<std::vector<Seconds>()>& round, const Effort& effort,
                     kernels::Communicator& ranks);

/// How long a GPU took, and whether the host had asked for all of it before the GPU got there: else
/// the time is the host's.
struct GpuSample {
  Seconds time;  ///< of one launch
  bool host_was_ahead = false;
};

/// The median of samples of so many launches, before which the GPU fills so much memory: more and
/// more as long as the host is not ahead. Nullopt where it is not even with 32 fills.
std::optional<Timed> time_behind_fills(
    const std::function<GpuSample(int launches, int fills)>& once, const Effort& effort);

/// The slowest rank's, on all ranks.
Timed slowest(const Timed& mine, kernels::Communicator& ranks);

/// The median of samples and its confidence interval by order statistics, which assumes nothing of
/// how they are distributed: of n samples, those at n/2 -+ 0.98 sqrt(n). Needs at least one sample.
Timed median_of(std::vector<Seconds> samples);

}  // namespace stratagem::calibrate
