// Lays out tables in aligned columns: widths first, then lines.
#include "report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace stratagem::report {

void add_row(std::vector<Column>& columns, const std::vector<std::string>& texts) {
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c].texts.push_back(texts.at(c));
}

std::vector<std::string> lines_of(const std::vector<Column>& columns) {
  std::vector<std::string> lines(columns.front().texts.size() + 1);
  for (const Column& column : columns) {
    std::size_t width = column.heading.size();
    for (const std::string& text : column.texts) width = std::max(width, text.size());
    const std::string gap = lines.front().empty() ? "" : "  ";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& text = i == 0 ? column.heading : column.texts[i - 1];
      lines[i] += gap + (column.left ? fmt::format("{:<{}}", text, width)
                                     : fmt::format("{:>{}}", text, width));
    }
  }
  for (std::string& line : lines) line.resize(line.find_last_not_of(' ') + 1);
  return lines;
}

std::string text_of(const std::vector<Column>& columns) {
  std::string all;
  for (const std::string& line : lines_of(columns)) all += line + "\n";
  return all;
}

}  // namespace stratagem::report
