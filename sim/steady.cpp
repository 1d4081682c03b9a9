// Tries a short program first, then one that has more turns, then all.
#include "sim/steady.hpp"

#include <array>
#include <optional>
#include <utility>

#include "program/shorter.hpp"
#include "sim/engine.hpp"
#include "sim/repeated_buffers.hpp"

namespace stratagem::sim {
namespace {

/// What the long loops of shorter programs keep at least, one program after the other. Most
/// simulations repeat within a few turns; a turn of an interleaved schedule is of as many
/// micro-batches as there are stages.
struct Spare {
  int micro_batches;
  int turns;
};
constexpr std::array<Spare, 3> spares = {{{8, 3}, {20, 5}, {50, 8}}};

constexpr int most = 12;  ///< iterations, and as many more as the program's lag

/// Do two periods agree? Rounds that repeat early enough show that they do in `most` iterations.
bool is_steady(const Timeline& timeline) {
  if (timeline.repeats_rounds() && timeline.simulated_rounds + 3 <= most) return true;
  const std::size_t measured = timeline.measured_iteration();
  return timeline.period(measured).count == timeline.period(measured - 1).count;
}

class Player {
 public:
  Player(const program::Program& program, const Folding& folding, const Prices& prices,
         Repeats repeats)
      : program_(program),
        folding_(folding),
        prices_(prices),
        repeats_(repeats),
        next_(repeats == Repeats::left_out ? 0 : spares.size()) {}

  Timeline play(int iterations) {
    for (; next_ < spares.size(); ++next_) {
      const auto [micro_batches, turns] = spares[next_];
      std::optional<program::Shorter> shorter = program::shorter(program_, micro_batches, turns);
      if (!shorter) continue;
      std::optional<Timeline> timeline =
          run_shorter(program_, std::move(*shorter), folding_, prices_, iterations);
      if (timeline && buffers_repeat(program_, *timeline)) return std::move(*timeline);
    }
    return run(program_, folding_, prices_, iterations, repeats_);
  }

 private:
  const program::Program& program_;
  const Folding& folding_;
  const Prices& prices_;
  Repeats repeats_;
  std::size_t next_;
};

}  // namespace

Timeline run_until_steady(const program::Program& program, const Folding& folding,
                          const Prices& prices, Repeats repeats) {
  Player player(program, folding, prices, repeats);
  Timeline timeline;
  for (const int iterations : {4, 6, most}) {
    timeline = player.play(iterations + program.lag);
    timeline.steady = is_steady(timeline);
    if (timeline.steady) break;
  }
  return timeline;
}

}  // namespace stratagem::sim
