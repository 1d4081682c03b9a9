// op-order in the plan language: a constraint between cells whose indices are arithmetic.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "placement/cell.hpp"

namespace stratagem::strategies {

/// How many cells there are, and what the names S, M, K and R stand for in rules.
struct Extent {
  int stages = 1;         ///< S
  int micro_batches = 1;  ///< M
  int slices = 1;         ///< K, of the tokens
  int repeats = 1;        ///< R, of the forward pass
};

/// Every cell that `before` names comes before the cell that `after` names, for all values of the
/// variables: "F(i, m + ofst)" before "B(i, m)", let ofst = "S-1-i". A pattern is
/// PASS(stage, micro-batch), all slices of it, or PASS(stage, micro-batch, slice); PASS is F, B, W,
/// or F1, F2, ... for a repeat of the forward pass (F alone is the last). Names of the patterns are
/// variables, but for `let` names, which are expressions of variables, S, M, K, R and the `let`
/// names before them. Variables take all whole values, below 0 too; of an instance of the rule of
/// which a cell does not exist, or whose `where` is false, nothing is said.
struct OrderRule {
  std::string before;
  std::string after;
  std::vector<std::pair<std::string, std::string>> let;
  std::string where;  ///< a condition such as "m % 2 == 0"; empty: always
  std::string path;   ///< JSON pointer that errors name
};

}  // namespace stratagem::strategies
