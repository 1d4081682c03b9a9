// Reads the facts of a table, one a line, then its columns and rows.
#include "calibrate/import/table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "base/quantity_text.hpp"
#include "base/read_file.hpp"
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
  std::vector<std::string> lines(1);
  for (const char letter : read_file(file)) {
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

  /// An error in what the table became, told by line and column of this CSV.
  [[nodiscard]] InputError by_line(const InputError& error) const {
    return {file_, place(error.path), error.expected, error.found};
  }

  /// Throws InputError for a row that no GPU of the datasheet can have measured, or that says again
  /// what another one has said.
  void check_rows(const Datasheet& sheet) const {
    std::map<std::string, std::size_t> seen;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const auto [found, fresh] = seen.emplace(shape_of(row), first_row_ + row);
      if (!fresh)
        throw InputError(file_, "line " + std::to_string(first_row_ + row),
                         "every shape once; line " + std::to_string(found->second) + " has it",
                         shape_of(row));
      check_rate(row, sheet);
    }
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
  /// What a column is of: "time" of "time us".
  [[nodiscard]] static std::string name_of(const std::string& column) {
    return column.substr(0, column.find(' '));
  }

  [[nodiscard]] std::string in_line(std::size_t line, std::size_t column) const {
    return "line " + std::to_string(line) + ", column \"" + columns_.at(column) + "\"";
  }

  /// Of "/tables/2/rows/1/3", "/tables/2/columns/0", "/tables/2/type".
  [[nodiscard]] std::string place(const std::string& path) const {
    std::vector<std::string> words;
    for (std::size_t begin = 1; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      words.push_back(path.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto number = [&](std::size_t word) {
      return static_cast<std::size_t>(std::atoi(words.at(word).c_str()));
    };
    if (words.size() < 3 || words[0] != "tables") return path;
    const std::size_t header = fact_lines_.at("rows") + 1;
    if (words[2] == "rows" && words.size() == 5) return in_line(first_row_ + number(3), number(4));
    if (words[2] == "rows" && words.size() == 4)
      return "line " + std::to_string(first_row_ + number(3));
    if (words[2] == "columns" && words.size() == 4) return in_line(header, number(3));
    if (words[2] == "columns" || words[2] == "rows") return "line " + std::to_string(header);
    const auto fact = fact_lines_.find(words[2]);
    return fact == fact_lines_.end() ? "" : "line " + std::to_string(fact->second);
  }

  [[nodiscard]] std::optional<std::size_t> column_of(const std::string& name) const {
    const auto found = std::ranges::find(columns_, name, &name_of);
    if (found == columns_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns_.begin());
  }

  /// All of a row but what was measured.
  [[nodiscard]] std::string shape_of(std::size_t row) const {
    std::string shape;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string name = name_of(columns_[c]);
      if (name == "time" || name == "rate" || name == "spread" || name == "repeats") continue;
      shape += (shape.empty() ? "" : ", ") + columns_[c] + " " + rows_[row][c];
    }
    return shape;
  }

  [[nodiscard]] double value(std::size_t row, const std::string& name) const {
    const auto column = column_of(name);
    return column ? number(rows_[row][*column], columns_[*column]) : 1;
  }

  /// In base units of Q; none without such a column.
  template <typename Q>
  [[nodiscard]] std::optional<Q> quantity(std::size_t row, const std::string& name) const {
    const auto column = column_of(name);
    if (!column) return std::nullopt;
    const std::string& header = columns_[*column];
    const auto unit = parse_quantity<Q>("1" + header.substr(std::min(header.size(), name.size())));
    if (!unit) return std::nullopt;  // which reading the table finds
    return value(row, name) * *unit;
  }

  /// Clocks may go above what datasheets count with, rates no further than this.
  static constexpr double margin = 1.2;

  template <typename Rate, typename Amount>
  void check_rate(std::size_t row, Amount amount, Rate most, const std::string& of) const {
    const auto time = quantity<Seconds>(row, "time");
    const auto stated = quantity<Rate>(row, "rate");
    if (!stated && !time) return;
    const Rate rate = stated ? *stated : amount / *time;
    if (rate <= margin * most) return;
    throw InputError(file_, in_line(first_row_ + row, *column_of(stated ? "rate" : "time")),
                     "no more than the datasheet's " + of + ", " + to_text(most), to_text(rate));
  }

  /// Products by the peak; what moves more than caches hold, and rates without bytes, by the
  /// bandwidth.
  void check_rate(std::size_t row, const Datasheet& sheet) const {
    constexpr Bytes beyond_caches = 1_GB;
    if (fact("kind") == "gemm") {
      const auto peak = sheet.peak.find(fact("type"));
      if (peak == sheet.peak.end()) return;
      const Flops flops{2 * value(row, "m") * value(row, "n") * value(row, "k") *
                        value(row, "batch")};
      return check_rate(row, flops, peak->second.value, "peak of " + fact("type"));
    }
    if (column_of("bytes") && Bytes{value(row, "bytes")} < beyond_caches) return;
    if (fact("kind") == "kernel_gap" || fact("kind") == "host_launch") return;
    check_rate(row, Bytes{value(row, "bytes")}, sheet.memory.bandwidth.value, "memory bandwidth");
  }

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
      const std::size_t number = at_ + 1;
      const std::string line = next("a fact of the table, \"rows\" last");
      const std::size_t comma = line.find(',');
      const std::string name = line.substr(0, comma);
      const bool known = name == "kind" || name == "operation" || name == "type" ||
                         name == "timing" || name == "family" || name == "source" || name == "rows";
      if (!known || comma == std::string::npos || comma + 1 == line.size())
        fail("", "kind, operation, type, timing, family, source or rows, a comma and what it is",
             line);
      if (!facts_.emplace(name, line.substr(comma + 1)).second) fail("", "every fact once", line);
      fact_lines_[name] = number;
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
    first_row_ = at_ + 1;
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
      rows_.push_back(cells);
    }
    if (at_ != lines_.size())
      fail(" and on", "no more than the " + fact("rows") + " rows promised", lines_[at_]);
    return rows;
  }

  std::string file_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;  ///< lines read, which is the number of the last one
  std::map<std::string, std::string> facts_;
  std::map<std::string, std::size_t> fact_lines_;
  std::vector<std::string> columns_;
  std::size_t first_row_ = 0;  ///< its line
  std::vector<std::vector<std::string>> rows_;
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
  std::vector<Csv> csvs;
  Json tables = Json::array();
  std::string source;
  for (const std::string& file : files) {
    Csv& csv = csvs.emplace_back(file);
    check_kind(file, csv.required("kind"));
    const std::string from = csv.required("source");
    if (source.find(from) == std::string::npos) source += (source.empty() ? "" : "; ") + from;
    tables.push(csv.table());
  }
  Json json = Json::object();
  json.set("schema", 1).set("device", measured_device(sheet, sheet.gpu));
  json.set("source", source).set("status", "measured").set("tables", tables);
  const std::string text = json.text(1) + "\n";
  try {
    static_cast<void>(read_measurements(JsonReader::from_text(text, files.front()), files.front()));
  } catch (const InputError& error) {
    if (!error.path.starts_with("/tables/")) throw;
    const auto number = static_cast<std::size_t>(std::atoi(error.path.c_str() + 8));
    throw csvs.at(number).by_line(error);
  }
  for (const Csv& csv : csvs) csv.check_rows(sheet);
  return text;
}

}  // namespace stratagem::calibrate
