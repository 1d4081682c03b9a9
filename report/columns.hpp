// Tables in columns that are as wide as they must be.
#pragma once

#include <string>
#include <vector>

namespace stratagem::report {

/// A heading, and the text of each row; all are right-aligned but those of a `left` column.
struct Column {
  std::string heading;
  std::vector<std::string> texts = {};
  bool left = false;
};

/// A text for each of the columns.
void add_row(std::vector<Column>& columns, const std::vector<std::string>& texts);

/// A line of headings, then one for each row. Expects as many texts in all columns, of which there
/// is one at least.
std::vector<std::string> lines_of(const std::vector<Column>& columns);
/// The same, each with a line's end.
std::string text_of(const std::vector<Column>& columns);

}  // namespace stratagem::report
