// Sorts the steps of each sequence by the turns of its long loop.
#include "program/check/repeated_turns.hpp"

#include <algorithm>

namespace stratagem::program {
namespace {

/// The levels of a sequence's steps.
struct Levels {
  int before = -1;  ///< the highest of a step before the long loop
  int after;        ///< the lowest of one behind it
  /// By turn, then step. In every turn the same steps follow each other.
  std::vector<std::vector<int>> turns;
};

Levels levels_of(const Calls& calls, int long_loop, const Steps& steps, const int* levels,
                 int most) {
  const Loop& loop = calls.loops()[long_loop];
  Levels result{.after = most + 1, .turns = std::vector<std::vector<int>>(loop.turns)};
  for (std::size_t step = 0; step < steps.places.size(); ++step) {
    const auto [stored, turn] = calls.place(steps.places[step].call);
    const int level = levels[step];
    if (stored < loop.first) {
      result.before = std::max(result.before, level);
    } else if (stored >= loop.first + loop.calls) {
      result.after = std::min(result.after, level);
    } else {
      result.turns[turn].push_back(level);
    }
  }
  return result;
}

/// Takes away the steps that wait for nothing in any turn: they can happen at any time.
void drop_free(Levels& levels) {
  const std::size_t steps = levels.turns.front().size();
  std::vector<bool> waits(steps, false);
  for (const std::vector<int>& turn : levels.turns) {
    for (std::size_t i = 0; i < steps; ++i) waits[i] = waits[i] || turn[i] > 0;
  }
  for (std::vector<int>& turn : levels.turns) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      if (waits[i]) turn[kept++] = turn[i];
    }
    turn.resize(kept);
  }
}

/// For each step of a loop: how many of its turns have happened by a level.
std::vector<int> done_by(int level, const Levels& levels) {
  std::vector<int> done(levels.turns.front().size(), 0);
  for (const std::vector<int>& turn : levels.turns) {
    for (std::size_t i = 0; i < turn.size(); ++i) done[i] += turn[i] <= level ? 1 : 0;
  }
  return done;
}

/// Has a loop gone on by one turn between two levels?
bool goes_on(const Levels& levels, int from, int to) {
  if (levels.before > from || levels.after <= to) return false;
  const std::vector<int> done = done_by(from, levels), then = done_by(to, levels);
  return std::ranges::equal(done, then, [](int a, int b) { return a + 1 == b; });
}

}  // namespace

bool turns_repeat(const Program& program, const std::vector<Shorter::LongLoop>& long_loops,
                  const Rounds& rounds, const std::vector<int>& levels) {
  if (std::ranges::find(levels, EventGraph::never) != levels.end()) return false;
  const int most = *std::ranges::max_element(levels);
  std::vector<Levels> all;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    all.push_back(levels_of(program.sequences[s].calls, long_loops[s].loop, rounds.steps(s),
                            levels.data() + rounds.first(s), most));
    const std::size_t steps = all.back().turns.front().size();
    const bool alike = std::ranges::all_of(
        all.back().turns, [&](const std::vector<int>& turn) { return turn.size() == steps; });
    if (!alike) return false;
    drop_free(all.back());
    if (all.back().turns.front().empty()) return false;
  }
  const auto& turns = all.front().turns;
  for (std::size_t turn = 1; turn < turns.size(); ++turn) {
    const int from = turns[turn - 1].front(), to = turns[turn].front();
    if (std::ranges::all_of(all, [&](const Levels& one) { return goes_on(one, from, to); }))
      return true;
  }
  return false;
}

}  // namespace stratagem::program
