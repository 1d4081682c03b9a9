// Numbers calls by shape, all but the micro-batch, and compares each shape's run with its next
// ones.
#include "lowering/sequences/roll.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace stratagem::lowering {
namespace {

using program::HostWait;
using program::Launch;
using program::Loop;
using program::StoredCall;
using program::Wait;

/// What is the same in every turn of a loop: the call, its waits for calls as far before; the
/// launches of the calls that alternate, at the first of them; how many calls before that one is.
using Shape = std::tuple<StoredCall, std::vector<Launch>, int>;

class Rolling {
 public:
  explicit Rolling(program::Sequence sequence)
      : sequence_(std::move(sequence)), calls_(sequence_.calls.stored()) {
    number_shapes();
  }

  program::Sequence roll() {
    const auto count = static_cast<int>(calls_.size());
    std::vector<StoredCall> stored;
    std::vector<Loop> loops;
    std::vector<int> place(calls_.size(), -1);  // among stored calls; -1: of a later turn
    for (int call = 0; call < count;) {
      Loop loop = best_from(call);
      if (loop.turns > 1) {
        loop.first = static_cast<int>(stored.size());
        loops.push_back(loop);
      }
      for (int i = call; i < call + loop.calls; ++i) {
        place[i] = static_cast<int>(stored.size());
        stored.push_back(std::move(calls_[i]));
      }
      call += loop.turns * loop.calls;
    }
    for (Launch& launch : sequence_.launches) launch.call = place[launch.call];
    std::erase_if(sequence_.launches, [](const Launch& launch) { return launch.call < 0; });
    sequence_.calls = {std::move(stored), loops};
    return std::move(sequence_);
  }

 private:
  void number_shapes() {
    std::vector<std::vector<Launch>> launches(calls_.size());  // by first call of those beside
    const std::vector<int> first = program::first_beside(sequence_);
    for (const Launch& one : sequence_.launches) {
      const int of = first[one.call];
      launches[of].push_back({one.call - of, one.first, one.end});
    }
    std::map<Shape, int> numbers;
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const auto number = static_cast<int>(c);
      StoredCall call = calls_[c];
      call.cell.micro_batch = 0;
      for (Wait& wait : call.waits) wait.of_call = number - wait.of_call;
      for (HostWait& wait : call.host_waits) {
        if (wait.of_call >= 0) wait.of_call = number - wait.of_call;
      }
      beside_.push_back(number - first[c]);
      const int next = static_cast<int>(numbers.size());
      Shape shape(std::move(call), std::move(launches[c]), beside_.back());
      shapes_.push_back(numbers.emplace(std::move(shape), next).first->second);
    }
    next_.assign(calls_.size(), static_cast<int>(calls_.size()));
    std::vector<int> latest(numbers.size(), static_cast<int>(calls_.size()));
    for (std::size_t c = calls_.size(); c-- > 0;)
      next_[c] = std::exchange(latest[shapes_[c]], static_cast<int>(c));
  }

  /// The loop from a call on that saves most; one call and one turn if none saves any.
  [[nodiscard]] Loop best_from(int call) const {
    const auto count = static_cast<int>(calls_.size());
    Loop best;
    const auto saved = [](const Loop& loop) { return (loop.turns - 1) * loop.calls; };
    for (int again = next_[call]; again < count && saved(best) < count - again;
         again = next_[again]) {
      const int calls = again - call;
      // Several turns of the best as one would save less.
      if (calls % best.calls == 0 && calls < best.turns * best.calls) continue;
      const Loop loop = turns_of(call, calls);
      if (saved(loop) > saved(best)) best = loop;
    }
    return best;
  }

  /// As many turns of so many calls as there are. A loop does not part calls that alternate.
  [[nodiscard]] Loop turns_of(int call, int calls) const {
    const auto count = static_cast<int>(calls_.size());
    const auto later = [&](int i) {
      return calls_[i + calls].cell.micro_batch - calls_[i].cell.micro_batch;
    };
    Loop loop{.calls = calls, .turns = 1, .step = later(call)};
    if (beside_[call] > 0) return loop;
    int i = call;
    while (i + calls < count && shapes_[i] == shapes_[i + calls] && later(i) == loop.step) ++i;
    loop.turns += (i - call) / calls;
    const int end = call + loop.turns * calls;
    if (end < count && beside_[end] > 0) --loop.turns;
    return loop;
  }

  program::Sequence sequence_;
  std::vector<StoredCall>& calls_;
  std::vector<int> shapes_;  ///< by call
  std::vector<int> beside_;  ///< by call: calls since the first of those that alternate with it
  std::vector<int> next_;    ///< by call: the next one of its shape; the number of calls: none
};

}  // namespace

program::Sequence roll(program::Sequence sequence) { return Rolling(std::move(sequence)).roll(); }

}  // namespace stratagem::lowering
