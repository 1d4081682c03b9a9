// Looks at each change of state once: the buffers of one micro-batch go through the same states as
// those of every other.
#include "program/check/lives.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "program/buffer_owners.hpp"
#include "program/check/describe.hpp"

namespace stratagem::program {
namespace {

enum class Life : std::uint8_t { none, allocated, written, freed };

/// Which tensors have live buffers, sorted, with their lives.
using State = std::vector<std::pair<model::TensorId, Life>>;

bool is_resident(const Slot& slot) { return is_resident(slot.category); }

/// By tensor: the life of its buffer. Remembers what was allocated.
class Lives {
 public:
  explicit Lives(std::size_t tensors) : of_tensor_(tensors, Life::none) {}

  void begin(const State& state) {
    for (const auto& [tensor, life] : state) of_tensor_[tensor] = life;
  }
  Life& operator[](model::TensorId tensor) { return of_tensor_[tensor]; }
  void add(model::TensorId tensor, Life life) {
    of_tensor_[tensor] = life;
    seen_.push_back(tensor);
  }

  /// What has become of a state; afterwards there is nothing.
  State end(const State& before) {
    std::ranges::sort(seen_);
    for (const auto& [tensor, life] : before) seen_.push_back(tensor);
    std::ranges::inplace_merge(seen_, seen_.end() - static_cast<std::ptrdiff_t>(before.size()));
    State after;
    for (const model::TensorId tensor : seen_) {
      const Life life = std::exchange(of_tensor_[tensor], Life::none);
      if (life == Life::allocated || life == Life::written) after.emplace_back(tensor, life);
    }
    seen_.clear();
    return after;
  }

 private:
  std::vector<Life> of_tensor_;
  std::vector<model::TensorId> seen_;
};

/// Plays one call on what is alive.
class LivesOfCall {
 public:
  LivesOfCall(const Program& program, const Sequence& sequence, int call, Lives& lives)
      : program_(program),
        sequence_(sequence),
        call_(call),
        block_(program.blocks[sequence.calls[call].block]),
        lives_(lives) {}

  void play() {
    own_.assign(block_.slots.size(), Life::none);
    for (task_ = 0; task_ < static_cast<int>(block_.tasks.size()); ++task_) {
      const Task& task = block_.tasks[task_];
      for (const int slot : task.allocates) allocate(slot);
      for (const int slot : task.reads) {
        if (!is_resident(block_.slots[slot]) && alive(slot, "read") != Life::written)
          refuse("to be written before it is read", slot);
      }
      for (const int slot : task.writes) {
        if (!is_resident(block_.slots[slot])) alive(slot, "written") = Life::written;
      }
      for (const int slot : task.frees) alive(slot, "freed") = Life::freed;
    }
    --task_;
    for (std::size_t slot = 0; slot < own_.size(); ++slot) leave(static_cast<int>(slot));
  }

 private:
  [[nodiscard]] model::TensorId tensor(int slot) const {
    const int place = block_.slots[slot].tensor;
    const int segment = sequence_.calls[call_].segment;
    return segment < 0 ? place : program_.segment_tensors[segment][place];
  }

  void allocate(int slot) {
    if (is_resident(block_.slots[slot]))
      refuse("not to be allocated, since it is always there", slot);
    if (own_[slot] != Life::none) refuse("to be allocated once", slot);
    own_[slot] = Life::allocated;
  }

  /// A buffer of this call, or the one that earlier calls left.
  Life& alive(int slot, const char* when) {
    Life& life = own_[slot] == Life::none ? lives_[tensor(slot)] : own_[slot];
    if (life == Life::none || life == Life::freed)
      refuse(std::string("to be alive when it is ") + when, slot);
    return life;
  }

  /// What is still alive is for later calls, which know it by its tensor.
  void leave(int slot) {
    if (own_[slot] == Life::none || own_[slot] == Life::freed) return;
    if (lives_[tensor(slot)] != Life::none && lives_[tensor(slot)] != Life::freed)
      refuse("to be the only one of its tensor that outlives a call", slot);
    lives_.add(tensor(slot), own_[slot]);
  }

  [[noreturn]] void refuse(const std::string& promise, int slot) const {
    throw InputError("", "", "buffer " + block_.slots[slot].name + " " + promise,
                     "otherwise at " + describe(program_, sequence_, {call_, task_}));
  }

  const Program& program_;
  const Sequence& sequence_;
  int call_;
  const Block& block_;
  Lives& lives_;
  std::vector<Life> own_;  ///< by slot: of a buffer that is allocated here
  int task_ = 0;
};

std::size_t tensor_count(const Program& program) {
  model::TensorId highest = -1;
  for (const std::vector<model::TensorId>& tensors : program.segment_tensors) {
    for (const model::TensorId tensor : tensors) highest = std::max(highest, tensor);
  }
  for (const Block& block : program.blocks) {
    for (const Slot& slot : block.slots) highest = std::max(highest, slot.tensor);
  }
  return static_cast<std::size_t>(highest) + 1;
}

/// What a block of the sequence calls a tensor.
std::string name_of(const Program& program, const Sequence& sequence, model::TensorId tensor) {
  for (const Call& call : sequence.calls) {
    for (const Slot& slot : program.blocks[call.block].slots) {
      const model::TensorId bound =
          call.segment < 0 ? slot.tensor : program.segment_tensors[call.segment][slot.tensor];
      if (bound == tensor) return slot.name;
    }
  }
  return "one";
}

/// Numbers states, and remembers what calls make of them.
class States {
 public:
  explicit States(const Program& program) : program_(program), lives_(tensor_count(program)) {
    for (const Block& block : program.blocks)
      touches_.push_back(!std::ranges::all_of(block.slots, is_resident));
  }

  /// The state after a call in a state; 0 is: nothing alive.
  int after(int state, const Sequence& sequence, int call) {
    const Call& c = sequence.calls[call];
    if (!touches_[c.block]) return state;
    const std::size_t binding = c.block * (program_.segment_tensors.size() + 1) + (c.segment + 1);
    changes_.resize(std::max(changes_.size(), states_.size()));
    const auto [known, fresh] = changes_[state].try_emplace(binding, state);
    if (!fresh) return known->second;
    lives_.begin(states_[state]);
    LivesOfCall(program_, sequence, call, lives_).play();
    State next = lives_.end(states_[state]);
    const auto [number, is_new] = numbers_.emplace(next, static_cast<int>(states_.size()));
    if (is_new) states_.push_back(std::move(next));
    return known->second = number->second;
  }

  /// One of the tensors that are alive in a state.
  [[nodiscard]] model::TensorId alive_in(int state) const { return states_[state].front().first; }

 private:
  const Program& program_;
  Lives lives_;
  std::vector<bool> touches_;  ///< by block: any buffer that is allocated and freed
  std::vector<State> states_ = {{}};
  std::map<State, int> numbers_ = {{{}, 0}};
  std::vector<std::map<std::size_t, int>> changes_;  ///< by state: by block and segment
};

}  // namespace

void check_lives(const Program& program) {
  States states(program);
  const BufferOwners owners(program);
  for (const Sequence& sequence : program.sequences) {
    std::vector<int> state(owners.count(), 0);
    std::vector<int> last(owners.count(), 0);
    for (int lag = 0; lag <= program.lag; ++lag) {
      for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
        const Call& call = sequence.calls[c];
        if (call.lag != lag) continue;
        const int owner = owners.of(call.cell);
        state[owner] = states.after(state[owner], sequence, static_cast<int>(c));
        last[owner] = static_cast<int>(c);
      }
    }
    const auto left = std::ranges::find_if(state, [](int s) { return s != 0; });
    if (left == state.end()) continue;
    const Call& call = sequence.calls[last[left - state.begin()]];
    throw InputError("", "", "buffers to be freed when nothing needs them any more",
                     name_of(program, sequence, states.alive_in(*left)) + " alive after " +
                         program.blocks[call.block].name + " in " + to_text(call.cell));
  }
}

}  // namespace stratagem::program
