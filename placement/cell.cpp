// Names of cells, for messages and traces.
#include "placement/cell.hpp"

namespace stratagem::placement {

std::string to_text(CellPass pass) {
  constexpr const char* names[] = {"F", "B", "W"};
  return names[static_cast<int>(pass)];
}

std::string to_text(const Cell& cell) {
  std::string text = to_text(cell.pass) + "(stage " + std::to_string(cell.stage) +
                     ", micro-batch " + std::to_string(cell.micro_batch);
  if (cell.slice > 0) text += ", slice " + std::to_string(cell.slice);
  if (cell.repeat > 0) text += ", repeat " + std::to_string(cell.repeat);
  return text + ")";
}

}  // namespace stratagem::placement
