// Numbers what calls allocate, then follows each owner's buffers from call to call.
#include "program/buffers.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace stratagem::program {
namespace {

/// Numbers the states in which the buffers of an owner can be (0: nothing lives), and finds each
/// passage from one to the next once: the buffers of one micro-batch go through the same states as
/// those of every other.
class Passages {
 public:
  Passages(const Program& program, const std::vector<SlotUses>& uses)
      : program_(program), uses_(uses) {}

  /// In a state, which becomes the next one.
  const Passage& of(const Call& call, int& state) {
    const std::uint64_t segments = program_.segment_tensors.size() + 1;
    const std::uint64_t block = state * program_.blocks.size() + call.block;
    const auto [known, fresh] = known_.try_emplace(block * segments + (call.segment + 1));
    auto& [passage, next] = known->second;
    if (fresh) {
      passage = pass(program_, call, uses_[call.block], states_[state]);
      const auto [found, is_new] =
          numbers_.emplace(passage.after, static_cast<int>(states_.size()));
      if (is_new) states_.push_back(passage.after);
      next = found->second;
    }
    state = next;
    return passage;
  }

 private:
  const Program& program_;
  const std::vector<SlotUses>& uses_;  ///< by block
  std::vector<LiveState> states_ = {{}};
  std::map<LiveState, int> numbers_ = {{{}, 0}};
  /// By state, block and segment; with the state that follows.
  std::unordered_map<std::uint64_t, std::pair<Passage, int>> known_;
};

/// The stages whose segments a sequence runs; in cells of others it holds what they lend.
std::set<int> stages_of(const Sequence& sequence) {
  std::set<int> stages;
  for (const Call& call : sequence.calls) {
    if (call.segment >= 0) stages.insert(call.cell.stage);
  }
  return stages;
}

/// By call: which repeat of which slice of which micro-batch, of this device's own or of what it
/// holds for others, which may be the same tensors.
std::vector<int> owners_of(const Sequence& sequence) {
  const std::set<int> own = stages_of(sequence);
  int slices = 1, repeats = 1, micro_batches = 1;
  for (const Call& call : sequence.calls) {
    micro_batches = std::max(micro_batches, call.cell.micro_batch + 1);
    slices = std::max(slices, call.cell.slice + 1);
    repeats = std::max(repeats, call.cell.repeat + 1);
  }
  std::vector<int> owners;
  for (const Call& call : sequence.calls) {
    const placement::Cell& cell = call.cell;
    const int repeat = cell.pass == placement::CellPass::forward ? cell.repeat : repeats - 1;
    const bool guest = !own.empty() && !own.contains(cell.stage);
    const int micro_batch = cell.micro_batch + (guest ? micro_batches : 0);
    owners.push_back((micro_batch * slices + cell.slice) * repeats + repeat);
  }
  return owners;
}

}  // namespace

Buffers::Buffers(const Program& program, const Sequence& sequence)
    : program_(program), sequence_(sequence), uses_(program.blocks.size()) {
  number_calls();
  follow_owners();
  for (std::size_t i = 0; i < sequence.residents.size(); ++i) {
    if (const auto& span = sequence.residents[i].span) {
      spans_from_.emplace(span->first, resident(static_cast<int>(i)));
      spans_to_.emplace(span->last, resident(static_cast<int>(i)));
    }
  }
}

/// Buffers in the order of the program, whichever iteration calls are of.
void Buffers::number_calls() {
  int own = 0, inherited = 0;
  for (const Call& call : sequence_.calls) {
    SlotUses& uses = uses_[call.block];
    if (uses.place.empty()) uses = uses_of(program_.blocks[call.block]);
    calls_.push_back({call.block, own, inherited});
    own += static_cast<int>(uses.own.size());
    inherited += static_cast<int>(uses.inherited.size());
  }
  inherited_.assign(inherited, -1);
  own_.reserve(own);
  for (std::size_t call = 0; call < calls_.size(); ++call) {
    const auto number = static_cast<int>(call);
    for (const SlotUses::Own& one : uses_[calls_[call].block].own)
      own_.push_back({number, one.dies ? TaskOfCall{number, *one.dies} : TaskOfCall{-1, -1}});
  }
}

/// In the order of an iteration: what runs in the same round first, then what lags by one.
void Buffers::follow_owners() {
  struct Owner {
    int state = 0;
    std::vector<int> alive;  ///< buffers by position
  };
  Passages passages(program_, uses_);
  const std::vector<int> owners = owners_of(sequence_);
  std::unordered_map<int, Owner> states;
  for (int lag = 0; lag <= program_.lag; ++lag) {
    std::size_t number = 0;
    for (const Call& call : sequence_.calls) {
      const std::size_t c = number++;
      const SlotUses& uses = uses_[call.block];
      if (call.lag != lag || (uses.own.empty() && uses.inherited.empty())) continue;
      Owner& owner = states[owners[c]];
      follow(passages.of(call, owner.state), static_cast<int>(c), owner.alive);
      if (owner.state == 0) states.erase(owners[c]);
    }
  }
}

void Buffers::follow(const Passage& passage, int call, std::vector<int>& alive) {
  for (std::size_t i = 0; i < passage.found.size(); ++i) {
    if (passage.found[i] >= 0) inherited_[calls_[call].inherited + i] = alive[passage.found[i]];
  }
  for (const auto& [position, task] : passage.freed) own_[alive[position]].dies = {call, task};
  alive.resize(std::max(alive.size(), passage.after.size()), -1);
  for (const auto& [own, position] : passage.left) alive[position] = calls_[call].own + own;
  if (!passage.misuse || misuse_) return;
  misuse_ = passage.misuse;
  misuse_->task.call = call;
}

std::optional<int> Buffers::undying() const {
  const auto found = std::ranges::find_if(own_, [](const Own& own) { return own.dies.call < 0; });
  if (found == own_.end()) return std::nullopt;
  return static_cast<int>(found - own_.begin());
}

Buffer Buffers::operator[](int number) const {
  if (number >= resident(0)) {
    const Resident& resident = sequence_.residents[number - this->resident(0)];
    Buffer buffer{.bytes = resident.bytes,
                  .category = resident.category,
                  .place = resident.place,
                  .tensor = resident.tensor};
    if (resident.span) buffer.born = resident.span->first;
    if (resident.span) buffer.dies = resident.span->last;
    return buffer;
  }
  const Own& own = own_[number];
  const Call call = sequence_.calls[own.call];
  const Slot* slot = this->slot(number);
  return {.born = TaskOfCall{own.call, use(number).born},
          .dies = own.dies.call < 0 ? std::nullopt : std::optional(own.dies),
          .slot = slot,
          .bytes = slot->bytes,
          .category = slot->category,
          .place = slot->place,
          .tensor = slot->tensor < 0 ? -1 : tensor_of(program_, call, slot->tensor)};
}

}  // namespace stratagem::program
