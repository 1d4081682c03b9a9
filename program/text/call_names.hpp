// The names of a sequence's calls: by themselves, and in loops.
#pragma once

#include <string>
#include <vector>

#include "program/calls.hpp"

namespace stratagem::program {

/// A call is named for what it runs and its cell; equal names are told apart by a number.
class CallNames {
 public:
  /// `runs`: by stored call. Expects that `calls` outlives this.
  CallNames(const Calls& calls, std::vector<std::string> runs);

  /// "F layers.3 in F(stage 0, micro-batch m+1)" in a loop whose first call is for micro-batch m.
  [[nodiscard]] const std::string& stored(int call) const { return names_[call]; }
  [[nodiscard]] std::string numbered(int call) const;
  /// What a stored call waits for; in a loop it is named as the last turn sees it, with how many
  /// calls lie between.
  [[nodiscard]] std::string waited_for(int stored, int of_call) const;
  /// "m = 0..6", "m = 0, 4..28", "m = 3, 2 times".
  [[nodiscard]] std::string turns(const Loop& loop) const;

 private:
  [[nodiscard]] std::string within(int stored, placement::Cell cell, int first_micro_batch) const;

  const Calls& calls_;
  std::vector<std::string> runs_;
  std::vector<std::string> names_;
};

}  // namespace stratagem::program
