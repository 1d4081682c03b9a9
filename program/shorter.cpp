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

/// The number of the loop of the most micro-batches; -1: there is none, or another of as many, or
/// it keeps buffers.
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

/// Collectives of one group in a sequence: before the long loop, in one of its turns, and in those
/// that a shorter sequence has.
struct OfGroup {
  int before = 0;
  int of_turn = 0;
  int kept = 0;
};

/// By group.
std::vector<OfGroup> by_group(const Program& program, const Sequence& sequence,
                              const Shorter::LongLoop& lacks) {
  std::vector<OfGroup> result;
  const Calls& calls = sequence.calls;
  const Loop& loop = calls.loops()[lacks.loop];
  for (int c = 0; c < loop.first + loop.calls; ++c) {
    const Loop* of_call = calls.loop_of(c);
    const int times = of_call == nullptr ? 1 : of_call->turns;
    for (const Task& task : program.blocks[calls.stored()[c].block].tasks) {
      const auto* collective = std::get_if<Collective>(&task.work);
      if (collective == nullptr) continue;
      const auto group = static_cast<std::size_t>(collective->group);
      if (result.size() <= group) result.resize(group + 1);
      (c < loop.first ? result[group].before : result[group].of_turn) += c < loop.first ? times : 1;
    }
  }
  for (OfGroup& one : result) one.kept = one.of_turn * (loop.turns - lacks.turns);
  return result;
}

/// Do all ranks of each communicator lack equally many of its collectives? And do the long loops of
/// all of them, as they are left, have some of these in common? Then the k-th of one rank is still
/// the same collective as the k-th of the others.
bool lack_alike(const Program& program, const Shorter& shorter) {
  struct Common {
    int lacking = -1;
    int first = 0;  ///< the latest first collective of a loop
    int end = 0;    ///< the earliest that is behind one
  };
  std::vector<std::vector<OfGroup>> by_sequence;
  for (std::size_t s = 0; s < program.sequences.size(); ++s)
    by_sequence.push_back(by_group(program, program.sequences[s], shorter.long_loops[s]));
  std::vector<Common> commons(program.communicators.size());
  for (const Device& device : program.devices) {
    const std::vector<OfGroup>& here = by_sequence[device.sequence];
    for (std::size_t group = 0; group < device.groups.size(); ++group) {
      if (device.groups[group] < 0) continue;
      const OfGroup one = group < here.size() ? here[group] : OfGroup{};
      Common& common = commons[device.groups[group]];
      const int lacking = one.of_turn * shorter.long_loops[device.sequence].turns;
      const bool fresh = common.lacking < 0;
      if (!fresh && common.lacking != lacking) return false;
      common = {.lacking = lacking,
                .first = fresh ? one.before : std::max(common.first, one.before),
                .end = fresh ? one.before + one.kept : std::min(common.end, one.before + one.kept)};
      if (lacking > 0 && common.first >= common.end) return false;
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

  /// Empty if a call outside of the loop has no micro-batch, or nothing to wait for, that is left.
  std::optional<Sequence> sequence() {
    for (std::size_t c = 0; c < calls_.stored().size(); ++c) renumber(static_cast<int>(c));
    Sequence result{{}, sequence_.residents, sequence_.launches};
    for (std::size_t c = 0; c < calls_.stored().size(); ++c) {
      StoredCall& call = calls_.stored()[c];
      check_later_turns(static_cast<int>(c));
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

  /// What a turn of a loop waits for is as far before it as in the first turn, also among the calls
  /// that are left.
  void check_later_turns(int stored) {
    const Loop* loop = sequence_.calls.loop_of(stored);
    if (loop == nullptr || in_loop(stored)) return;
    const int later = (loop->turns - 1) * loop->calls;
    const auto check = [&](int of_call) {
      if (of_call >= 0 && number(of_call + later) != number(of_call) + later) possible_ = false;
    };
    for (const Wait& wait : sequence_.calls.stored()[stored].waits) check(wait.of_call);
    for (const HostWait& wait : sequence_.calls.stored()[stored].host_waits) check(wait.of_call);
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

/// At most so many micro-batches, in whole turns. A period may be of several turns, and has to
/// divide those that are left out: of many turns it is a multiple of 12.
int whole_turns(int micro_batches, int step) {
  const int turns = micro_batches / step;
  const int unit = turns >= 48 ? 12 : turns >= 8 ? 2 : 1;
  return turns / unit * unit * step;
}

}  // namespace

std::optional<Shorter> shorter(const Program& program, int spare, int turns) {
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
  result.count = whole_turns(std::max(0, fewest - std::max(spare, turns * step)), step);
  if (4 * result.count < micro_batches) return std::nullopt;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    Shortened without(program.sequences[s], result.long_loops[s].loop, micro_batches, result.count);
    std::optional<Sequence> shortened = without.sequence();
    if (!shortened) return std::nullopt;
    result.sequences.push_back(std::move(*shortened));
    result.long_loops[s].turns = without.turns();
  }
  if (!lack_alike(program, result)) return std::nullopt;
  return result;
}

}  // namespace stratagem::program
