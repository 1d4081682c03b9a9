// "F(0, 0) F(0, 1)+B(0, 0)": cells one after the other; those that + joins run together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strategies/plan/order_rule.hpp"

namespace stratagem::strategies {

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
