// Finds the long loop of each sequence, and takes turns away.
#include "program/shorter.hpp"

#include <algorithm>
#include <utility>

namespace stratagem::program {
namespace {

int micro_batches_of(const Program& program) {
  int most = 0;
  for (const Sequence& sequence : program.sequences) {
    for (std::size_t c = 0; c < sequence.calls.stored().size(); ++c) {
      const Loop* loop = sequence.calls.loop_of(static_cast<int>(c));
      const int later = loop == nullptr ? 0 : loop->step * (loop->turns - 1);
      most = std::max(most, sequence.calls.stored()[c].cell.micro_batch + later + 1);
    }
  }
  return most;
}

/// How many more buffers the tasks of a block allocate than they free.
int kept(const Block& block) {
  std::size_t allocated = 0, freed = 0;
  for (const Task& task : block.tasks) {
    allocated += task.allocates.size();
    freed += task.frees.size();
  }
  return static_cast<int>(allocated) - static_cast<int>(freed);
}

/// The number of the loop of the most micro-batches; -1: there is none, or another of as many, or it
/// keeps buffers.
int long_loop(const Program& program, const Calls& calls) {
  int found = -1, most = 0;
  for (std::size_t l = 0; l < calls.loops().size(); ++l) {
    const int micro_batches = calls.loops()[l].step * calls.loops()[l].turns;
    if (micro_batches >= most) found = micro_batches > most ? static_cast<int>(l) : -1;
    most = std::max(most, micro_batches);
  }
  if (found < 0) return found;
  const Loop& loop = calls.loops()[found];
  int buffers = 0;
  for (int c = loop.first; c < loop.first + loop.calls; ++c)
    buffers += kept(program.blocks[calls.stored()[c].block]);
  return buffers == 0 ? found : -1;
}

/// By group: how many collectives the turns have that a sequence lacks.
std::vector<int> lacking_collectives(const Program& program, const Sequence& sequence,
                                     const Shorter::LongLoop& lacks) {
  std::vector<int> lacking;
  const Loop& loop = sequence.calls.loops()[lacks.loop];
  for (int c = loop.first; c < loop.first + loop.calls; ++c) {
    for (const Task& task : program.blocks[sequence.calls.stored()[c].block].tasks) {
      const auto* collective = std::get_if<Collective>(&task.work);
      if (collective == nullptr) continue;
      const auto group = static_cast<std::size_t>(collective->group);
      if (lacking.size() <= group) lacking.resize(group + 1, 0);
      lacking[group] += lacks.turns;
    }
  }
  return lacking;
}

/// Do all ranks of each communicator lack as many of its collectives?
bool meet(const Program& program, const Shorter& shorter) {
  std::vector<std::vector<int>> lacking;  // by sequence, then group
  for (std::size_t s = 0; s < program.sequences.size(); ++s)
    lacking.push_back(lacking_collectives(program, program.sequences[s], shorter.long_loops[s]));
  std::vector<int> of_first(program.communicators.size(), -1);
  for (const Device& device : program.devices) {
    const std::vector<int>& here = lacking[device.sequence];
    for (std::size_t group = 0; group < device.groups.size(); ++group) {
      if (device.groups[group] < 0) continue;
      int& first = of_first[device.groups[group]];
      const int count = group < here.size() ? here[group] : 0;
      if (first < 0) first = count;
      if (first != count) return false;
    }
  }
  return true;
}

/// One sequence with fewer turns of its long loop.
class Shortened {
 public:
  Shortened(const Sequence& sequence, int loop, int micro_batches, int left_out)
      : sequence_(sequence),
        loop_(sequence.calls.loops()[loop]),
        micro_batches_(micro_batches),
        left_out_(left_out) {
    std::vector<Loop> loops = sequence.calls.loops();
    loops[loop].turns -= turns();
    calls_ = {sequence.calls.stored(), loops};
  }

  [[nodiscard]] int turns() const { return left_out_ / loop_.step; }

  /// Empty where a call that is not in the loop is of a micro-batch that it cannot be of.
  std::optional<Sequence> sequence() {
    for (std::size_t c = 0; c < calls_.stored().size(); ++c) renumber(static_cast<int>(c));
    Sequence result{{}, sequence_.residents, sequence_.launches};
    for (StoredCall& call : calls_.stored()) {
      for (Wait& wait : call.waits) wait.of_call = number(wait.of_call);
      for (HostWait& wait : call.host_waits) wait.of_call = number(wait.of_call);
    }
    for (Resident& resident : result.residents) {
      if (!resident.span) continue;
      resident.span->first.call = number(resident.span->first.call);
      resident.span->last.call = number(resident.span->last.call);
    }
    if (!possible_) return std::nullopt;
    result.calls = std::move(calls_);
    return result;
  }

 private:
  [[nodiscard]] bool in_loop(int stored) const {
    return loop_.first <= stored && stored < loop_.first + loop_.calls;
  }

  /// Micro-batches after the loop are the last ones, those before it the first. What is of no
  /// micro-batch is of the first.
  void renumber(int stored) {
    StoredCall& call = calls_.stored()[stored];
    int& micro_batch = call.cell.micro_batch;
    if (in_loop(stored) || (call.segment < 0 && micro_batch == 0)) return;
    if (stored >= loop_.first) micro_batch -= left_out_;
    if (micro_batch < 0 || micro_batch >= micro_batches_ - left_out_) possible_ = false;
  }

  /// The number that a call has now; less than 0 is no call.
  int number(int before) {
    if (before < 0) return before;
    Calls::Place place = sequence_.calls.place(before);
    if (!in_loop(place.stored) || place.turn == 0) return calls_.number(place);
    place.turn -= turns();
    return place.turn >= 0 ? calls_.number(place) : before_loop(place);
  }

  /// The call before the loop that is for the micro-batch of a turn that would be before the first.
  int before_loop(const Calls::Place& place) {
    const StoredCall& of = sequence_.calls.stored()[place.stored];
    placement::Cell cell = of.cell;
    cell.micro_batch += place.turn * loop_.step;
    const int end = calls_.number({loop_.first, 0});
    for (int number = 0; number < end; ++number) {
      const Call call = calls_[number];
      if (call.block == of.block && call.segment == of.segment && call.cell == cell) return number;
    }
    possible_ = false;
    return 0;
  }

  const Sequence& sequence_;
  const Loop& loop_;
  int micro_batches_;
  int left_out_;
  Calls calls_;
  bool possible_ = true;
};

/// As many as leave loops whole; by the dozen where there are many, since a period may be of several
/// turns.
int whole_turns(int micro_batches, int step) {
  const int turns = micro_batches / step;
  const int unit = turns >= 48 ? 12 : turns >= 8 ? 2 : 1;
  return turns / unit * unit * step;
}

}  // namespace

std::optional<Shorter> shorter(const Program& program, int spare) {
  if (program.lag > 0 || program.sequences.empty()) return std::nullopt;
  const int micro_batches = micro_batches_of(program);
  Shorter result;
  int fewest = micro_batches, step = 0;
  for (const Sequence& sequence : program.sequences) {
    const int number = long_loop(program, sequence.calls);
    if (number < 0) return std::nullopt;
    const Loop& loop = sequence.calls.loops()[number];
    if (step != 0 && loop.step != step) return std::nullopt;
    step = loop.step;
    fewest = std::min(fewest, loop.step * loop.turns);
    result.long_loops.push_back({.loop = number});
  }
  result.count = whole_turns(std::max(0, fewest - std::max(spare, 2 * step)), step);
  if (4 * result.count < micro_batches) return std::nullopt;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    Shortened without(program.sequences[s], result.long_loops[s].loop, micro_batches, result.count);
    std::optional<Sequence> shortened = without.sequence();
    if (!shortened) return std::nullopt;
    result.sequences.push_back(std::move(*shortened));
    result.long_loops[s].turns = without.turns();
  }
  if (!meet(program, result)) return std::nullopt;
  return result;
}

}  // namespace stratagem::program
