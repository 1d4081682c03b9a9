// How one call changes the buffers that are live: which it finds, frees and leaves, and what it
// must not do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/program.hpp"

namespace stratagem::program {

/// How the tasks of a block use its slots, whatever calls it. A slot that the block allocates is a
/// buffer of the call; any other, unless it is resident, is one that an earlier call has left.
struct SlotUses {
  struct Own {
    int slot = 0;
    int born = 0;             ///< the task that allocates it
    std::optional<int> dies;  ///< the task that frees it; none: it outlives the call
  };
  std::vector<Own> own;        ///< in the order in which they are allocated
  std::vector<int> inherited;  ///< slots
  /// By slot: k of own[k], own.size() + k of inherited[k], -1: neither.
  std::vector<int> place;
};
SlotUses uses_of(const Block& block);

enum class Life : std::uint8_t { none, allocated, written, freed };

/// What lives between two calls of one owner. A buffer keeps its position while it lives; positions
/// at which nothing is have no life.
struct LiveBuffer {
  model::TensorId tensor = -1;
  Life life = Life::none;
  friend auto operator<=>(const LiveBuffer&, const LiveBuffer&) = default;
};
using LiveState = std::vector<LiveBuffer>;

/// A task of a call breaks a promise about a buffer, such as "to be alive when it is read".
struct Misuse {
  TaskOfCall task;
  int slot = 0;
  std::string promise;
};

/// Positions are those of LiveState.
struct Passage {
  LiveState after;
  std::vector<int> found;                  ///< by SlotUses::inherited: its position; -1: none
  std::vector<std::pair<int, int>> freed;  ///< positions, and the tasks that free what is there
  std::vector<std::pair<int, int>> left;   ///< of SlotUses::own, and the positions that they take
  std::optional<Misuse> misuse;            ///< the first, in call 0
};

/// A call that finds such a state.
Passage pass(const Program& program, const Call& call, const SlotUses& uses,
             const LiveState& before);

}  // namespace stratagem::program
