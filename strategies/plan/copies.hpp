// How many copies every stage of a plan has, and which micro-batches each of them works on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// How the micro-batches of an iteration are dealt to the copies of a stage.
enum class Deal : std::uint8_t {
  shares,  ///< consecutive ones, the first share to copy 0: Chimera's two directions
  turns    ///< micro-batch m to copy m mod copies, forward and backward: PipeDream's 1F1B-RR
};

/// The copies (replicas) of the stages. Each copy holds all parameters of its stage. The gradients
/// of a stage's copies are summed before any of them steps, so they stay equal.
struct Copies {
  std::vector<int> of_stage;  ///< empty: one of every stage
  Deal deal = Deal::shares;

  [[nodiscard]] int of(int stage) const { return of_stage.empty() ? 1 : of_stage[stage]; }
  [[nodiscard]] int most() const { return of_stage.empty() ? 1 : std::ranges::max(of_stage); }
  /// Has every stage equally many?
  [[nodiscard]] bool equal() const {
    return std::ranges::all_of(of_stage, [&](int n) { return n == of_stage.front(); });
  }
  /// The copy of a stage that works on a micro-batch of an iteration of so many.
  [[nodiscard]] int of_micro_batch(int stage, int micro_batch, int micro_batches) const {
    const int n = of(stage);
    return deal == Deal::turns ? micro_batch % n
                               : static_cast<int>(std::int64_t{micro_batch} * n / micro_batches);
  }
};

/// "2-1-1", as PipeDream's paper writes it.
std::string to_text(const std::vector<int>& copies);

}  // namespace stratagem::strategies
