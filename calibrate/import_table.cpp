// Facts of a table, one a line, then its columns and rows.
#include "calibrate/import_table.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char letter : line) {
    if (letter == ',')
      cells.emplace_back();
    else
      cells.back() += letter;
  }
  return cells;
}

/// All lines, without carriage returns. The last one must have been written to its end.
std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(file, "", "a file that can be read", "");
  std::vector<std::string> lines(1);
  for (char letter = 0; in.get(letter);) {
    if (letter == '\n')
      lines.emplace_back();
    else if (letter != '\r')
      lines.back() += letter;
  }
  if (!lines.back().empty())
    throw InputError(file, "line " + std::to_string(lines.size()),
                     "an end of line: the file is cut off", lines.back());
  lines.pop_back();
  return lines;
}

/// One CSV on its way to a table.
class Csv {
 public:
  explicit Csv(const std::string& file) : file_(file), lines_(lines_of(file)) {
    read_facts();
    columns_ = cells_of(next("the names of the columns"));
  }

  /// What stands in front of the columns; "" where it may be missing and is.
  [[nodiscard]] std::string fact(const std::string& name) const {
    const auto found = facts_.find(name);
    return found == facts_.end() ? "" : found->second;
  }
  [[nodiscard]] std::string required(const std::string& name) const {
    if (fact(name).empty()) throw InputError(file_, "", "a line \"" + name + ",...\"", "");
    return fact(name);
  }

  Json table() {
    Json table = Json::object();
    table.set("kind", required("kind"));
    for (const char* name : {"operation", "type"}) {
      if (!fact(name).empty()) table.set(name, fact(name));
    }
    table.set("timing", fact("timing").empty() ? "kernel" : fact("timing"));
    if (!fact("family").empty()) {
      Json family = Json::array();
      for (const std::string& word : cells_of(fact("family"))) family.push(word);
      table.set("family", family);
    }
    Json columns = Json::array();
    for (const std::string& column : columns_) columns.push(column);
    return table.set("columns", columns).set("rows", rows());
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& expected,
                         const std::string& found) const {
    throw InputError(file_, "line " + std::to_string(at_) + where, expected, found);
  }

  std::string next(const std::string& expected) {
    if (at_ == lines_.size()) {
      ++at_;
      fail("", expected + ": the file is cut off", "its end");
    }
    return lines_[at_++];
  }

  /// Facts end where the number of rows stands.
  void read_facts() {
    while (!facts_.contains("rows")) {
      const std::string line = next("a fact of the table, \"rows\" last");
      const std::size_t comma = line.find(',');
      const std::string name = line.substr(0, comma);
      const bool known = name == "kind" || name == "operation" || name == "type" ||
                         name == "timing" || name == "family" || name == "source" || name == "rows";
      if (!known || comma == std::string::npos || comma + 1 == line.size())
        fail("", "kind, operation, type, timing, family, source or rows, a comma and what it is",
             line);
      if (!facts_.emplace(name, line.substr(comma + 1)).second) fail("", "every fact once", line);
    }
  }

  [[nodiscard]] double number(const std::string& cell, const std::string& column) const {
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value))
      fail(", column \"" + column + "\"", "a number", cell);
    if (!(value > 0)) fail(", column \"" + column + "\"", "a number of more than 0", cell);
    return value;
  }

  /// Sizes are whole.
  [[nodiscard]] static Json json_number(double value) {
    constexpr double exact = 9e15;
    if (value < exact && value == std::floor(value)) return static_cast<std::int64_t>(value);
    return value;
  }

  Json rows() {
    const double promised = [&] {
      const double value = number(fact("rows"), "rows");
      if (value != std::floor(value)) fail("", "a whole number of rows", fact("rows"));
      return value;
    }();
    Json rows = Json::array();
    for (double row = 0; row < promised; ++row) {
      const std::string line =
          next("row " + std::to_string(static_cast<int>(row) + 1) + " of " + fact("rows"));
      const std::vector<std::string> cells = cells_of(line);
      if (cells.size() != columns_.size())
        fail("", std::to_string(columns_.size()) + " values, one per column", line);
      Json values = Json::array();
      for (std::size_t c = 0; c < cells.size(); ++c) {
        values.push(columns_[c] == "transposes" ? Json(cells[c])
                                                : json_number(number(cells[c], columns_[c])));
      }
      rows.push(values);
    }
    if (at_ != lines_.size())
      fail(" and on", "no more than the " + fact("rows") + " rows promised", lines_[at_]);
    return rows;
  }

  std::string file_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;  ///< lines read, which is the number of the last one
  std::map<std::string, std::string> facts_;
  std::vector<std::string> columns_;
};

/// Collectives come from logs of nccl-tests, which say more than a table.
void check_kind(const std::string& file, const std::string& kind) {
  if (kind.ends_with("all_reduce") || kind.starts_with("nccl_"))
    throw InputError(file, "", "a kind of kernel; collectives are imported from logs of nccl-tests",
                     kind);
}

}  // namespace

std::string import_tables(const std::vector<std::string>& files, const Datasheet& sheet) {
  expects(!files.empty(), "at least one CSV");
  Json tables = Json::array();
  std::string source;
  for (const std::string& file : files) {
    Csv csv(file);
    check_kind(file, csv.required("kind"));
    const std::string from = csv.required("source");
    if (source.find(from) == std::string::npos) source += (source.empty() ? "" : "; ") + from;
    tables.push(csv.table());
  }
  Json json = Json::object();
  json.set("schema", 1).set("device", measured_device(sheet, sheet.gpu));
  json.set("source", source).set("status", "measured").set("tables", tables);
  const std::string text = json.text(1) + "\n";
  static_cast<void>(read_measurements(JsonReader::from_text(text, files.front()), files.front()));
  return text;
}

}  // namespace stratagem::calibrate
