// Names stored calls once; those of a turn when they are asked for.
#include "program/text/call_names.hpp"

#include <fmt/format.h>

#include <utility>

#include "program/text/names.hpp"

namespace stratagem::program {

CallNames::CallNames(const Calls& calls, std::vector<std::string> runs)
    : calls_(calls), runs_(std::move(runs)) {
  for (int c = 0; c < static_cast<int>(runs_.size()); ++c) {
    const placement::Cell& cell = calls.stored()[c].cell;
    const Loop* loop = calls.loop_of(c);
    names_.push_back(loop == nullptr
                         ? runs_[c] + " in " + to_text(cell)
                         : within(c, cell, calls.stored()[loop->first].cell.micro_batch));
  }
  number_equals(names_);
}

/// "F(stage 0, micro-batch m-1)".
std::string CallNames::within(int stored, placement::Cell cell, int first_micro_batch) const {
  const int later = std::exchange(cell.micro_batch, 0) - first_micro_batch;
  const std::string before = "micro-batch ", text = to_text(cell);
  const std::size_t at = text.find(before) + before.size();
  return runs_[stored] + " in " + text.substr(0, at) +
         (later == 0 ? "m" : fmt::format("m{:+}", later)) + text.substr(at + 1);
}

std::string CallNames::numbered(int call) const {
  const int stored = calls_.place(call).stored;
  if (calls_.loop_of(stored) == nullptr) return names_[stored];
  return runs_[stored] + " in " + to_text(calls_[call].cell);
}

std::string CallNames::waited_for(int stored, int of_call) const {
  const Loop* loop = calls_.loop_of(stored);
  if (loop == nullptr) return numbered(of_call);
  const int last = loop->turns - 1, of = of_call + last * loop->calls;
  const int m = calls_[calls_.number({loop->first, last})].cell.micro_batch;
  const int before = calls_.number({stored, 0}) - of_call;
  return within(calls_.place(of).stored, calls_[of].cell, m) +
         fmt::format(", {} call{} before", before, before == 1 ? "" : "s");
}

std::string CallNames::turns(const Loop& loop) const {
  const int m = calls_.stored()[loop.first].cell.micro_batch;
  if (loop.step == 0) return fmt::format("m = {}, {} times", m, loop.turns);
  const std::string next = loop.step == 1 ? "" : fmt::format(", {}", m + loop.step);
  return fmt::format("m = {}{}..{}", m, next, m + (loop.turns - 1) * loop.step);
}

}  // namespace stratagem::program
