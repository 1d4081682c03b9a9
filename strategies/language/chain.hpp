// Cells in text: patterns, "F(i, m+ofst)", and chains, "F(0, 0) F(0, 1)+B(0, 0)", of cells one
// after the other; those that + joins run together.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategies/language/expression.hpp"
#include "strategies/plan/order_rule.hpp"

namespace stratagem::strategies {

/// "F(i, m+ofst)": a cell whose coordinates are expressions.
struct CellPattern {
  placement::CellPass pass = placement::CellPass::forward;
  std::optional<int> repeat;            ///< of F, from 0; nullopt: the last
  std::vector<Expression> coordinates;  ///< stage, micro-batch and, if told, slice
};

/// Throws InputError at `path` for what is not PASS(stage, micro-batch) or
/// PASS(stage, micro-batch, slice), PASS being F, B, W or F1, F2, ...
CellPattern parse_cell_pattern(const std::string& text, const std::string& path);

struct Chain {
  std::vector<placement::Cell> cells;
  std::vector<std::pair<placement::Cell, placement::Cell>> together;
};

/// The cells of a text, blanks between them; F, or F1, F2, ... for a repeat, coordinates being
/// expressions of S, M, K and R. Throws InputError at `path` for other text and for cells that no
/// plan of that extent has.
Chain parse_chain(const std::string& text, const Extent& extent, const std::string& path);

/// Is the text one cell or cell pattern, rather than a chain?
bool is_one_cell(const std::string& text);

struct ChainText {
  std::string whole;
  std::string abbreviated;  ///< a long one without its middle, for reading
};

/// The reverse; `together` is sorted.
ChainText text_of(const Chain& chain, const Extent& extent);

}  // namespace stratagem::strategies
