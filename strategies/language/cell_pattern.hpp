// "F(i, m+ofst)": a cell whose coordinates are expressions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/cell.hpp"
#include "strategies/language/expression.hpp"

namespace stratagem::strategies {

struct CellPattern {
  placement::CellPass pass = placement::CellPass::forward;
  std::optional<int> repeat;            ///< of F, from 0; nullopt: the last
  std::vector<Expression> coordinates;  ///< stage, micro-batch and, if told, slice
};

/// Throws InputError at `path` for what is not PASS(stage, micro-batch) or
/// PASS(stage, micro-batch, slice), PASS being F, B, W or F1, F2, ...
CellPattern parse_cell_pattern(const std::string& text, const std::string& path);

}  // namespace stratagem::strategies
