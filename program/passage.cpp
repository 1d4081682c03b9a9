// Plays the tasks of a call one after another.
#include "program/passage.hpp"

#include <algorithm>
#include <unordered_map>

namespace stratagem::program {
namespace {

bool lives(Life life) { return life == Life::allocated || life == Life::written; }

class PlayedCall {
 public:
  PlayedCall(const Program& program, const Call& call, const SlotUses& uses,
             const LiveState& before)
      : program_(program),
        call_(call),
        block_(program.blocks[call.block]),
        uses_(uses),
        own_(uses.own.size(), Life::none) {
    result_.after = before;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (lives(before[i].life)) positions_.emplace(before[i].tensor, static_cast<int>(i));
    }
    for (const int slot : uses_.inherited) {
      const auto there = positions_.find(tensor(slot));
      result_.found.push_back(there == positions_.end() ? -1 : there->second);
    }
  }

  Passage play() {
    for (task_ = 0; task_ < static_cast<int>(block_.tasks.size()); ++task_)
      play(block_.tasks[task_]);
    --task_;
    LiveState& after = result_.after;
    for (const auto& [position, task] : result_.freed) {
      positions_.erase(after[position].tensor);
      after[position] = {};
    }
    for (std::size_t k = 0; k < own_.size(); ++k) {
      if (lives(own_[k])) leave(static_cast<int>(k));
    }
    while (!after.empty() && after.back().life == Life::none) after.pop_back();
    return std::move(result_);
  }

 private:
  void play(const Task& task) {
    for (const int slot : task.allocates) allocate(slot);
    for (const int slot : task.reads) {
      if (is_resident(slot)) continue;
      Life* const life = alive(slot, "read");
      if (life != nullptr && *life == Life::allocated)
        refuse(slot, "to be written before it is read");
    }
    for (const int slot : task.writes) {
      if (is_resident(slot)) continue;
      if (Life* const life = alive(slot, "written")) *life = Life::written;
    }
    for (const int slot : task.frees) {
      Life* const life = alive(slot, "freed");
      if (life == nullptr) continue;
      *life = Life::freed;
      if (const int k = inherited(slot); k >= 0)
        result_.freed.emplace_back(result_.found[k], task_);
    }
  }

  void allocate(int slot) {
    Life& life = own_[uses_.place[slot]];
    if (is_resident(slot)) refuse(slot, "not to be allocated, since it is always there");
    if (life != Life::none) refuse(slot, "to be allocated once");
    life = Life::allocated;
  }

  /// What is still alive is for later calls, which know it by its tensor.
  void leave(int k) {
    LiveState& after = result_.after;
    const int slot = uses_.own[k].slot;
    const auto free = std::ranges::find(after, Life::none, &LiveBuffer::life) - after.begin();
    const auto [at, only] = positions_.emplace(tensor(slot), static_cast<int>(free));
    if (!only) refuse(slot, "to be the only one of its tensor that outlives a call");
    if (at->second == static_cast<int>(after.size())) after.emplace_back();
    after[at->second] = {tensor(slot), own_[k]};
    result_.left.emplace_back(k, at->second);
  }

  [[nodiscard]] model::TensorId tensor(int slot) const {
    return tensor_of(program_, call_, block_.slots[slot].tensor);
  }
  [[nodiscard]] int inherited(int slot) const {
    return uses_.place[slot] - static_cast<int>(own_.size());
  }

  [[nodiscard]] bool is_resident(int slot) const {
    return program::is_resident(block_.slots[slot].category);
  }

  /// Null if it is not.
  Life* alive(int slot, const char* when) {
    Life* life = nullptr;
    if (const int k = inherited(slot); k < 0) {
      life = uses_.place[slot] < 0 ? nullptr : &own_[uses_.place[slot]];
    } else if (result_.found[k] >= 0) {
      life = &result_.after[result_.found[k]].life;
    }
    if (life != nullptr && lives(*life)) return life;
    refuse(slot, std::string("to be alive when it is ") + when);
    return nullptr;
  }

  void refuse(int slot, std::string promise) {
    if (!result_.misuse) result_.misuse = {{0, task_}, slot, std::move(promise)};
  }

  const Program& program_;
  const Call& call_;
  const Block& block_;
  const SlotUses& uses_;
  std::vector<Life> own_;  ///< by SlotUses::own
  std::unordered_map<model::TensorId, int> positions_;
  Passage result_;
  int task_ = 0;
};

}  // namespace

SlotUses uses_of(const Block& block) {
  SlotUses uses;
  uses.place.assign(block.slots.size(), -1);
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    for (const int slot : block.tasks[t].allocates) {
      if (uses.place[slot] >= 0) continue;
      uses.place[slot] = static_cast<int>(uses.own.size());
      uses.own.push_back({.slot = slot, .born = static_cast<int>(t)});
    }
  }
  const auto own = static_cast<int>(uses.own.size());
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    const Task& task = block.tasks[t];
    for (const auto* slots : {&task.reads, &task.writes, &task.frees}) {
      for (const int slot : *slots) {
        if (uses.place[slot] >= 0 || is_resident(block.slots[slot].category)) continue;
        uses.place[slot] = own + static_cast<int>(uses.inherited.size());
        uses.inherited.push_back(slot);
      }
    }
    for (const int slot : task.frees) {
      if (const int k = uses.place[slot]; k >= 0 && k < own && !uses.own[k].dies)
        uses.own[k].dies = static_cast<int>(t);
    }
  }
  return uses;
}

Passage pass(const Program& program, const Call& call, const SlotUses& uses,
             const LiveState& before) {
  return PlayedCall(program, call, uses, before).play();
}

}  // namespace stratagem::program
