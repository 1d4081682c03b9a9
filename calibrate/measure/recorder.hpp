// A measurements file that grows as it is measured, and is never lost or half written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "calibrate/measure/experiment.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/stopwatch.hpp"

namespace stratagem::calibrate {

/// What shares are taken of: the rates of a large product and a large sum.
struct Rates {
  FlopsPerSecond fp32;
  BytesPerSecond memory;
  Seconds pace;  ///< at which they hold
};

class Recorder {
 public:
  /// Goes on with `file` if it exists. Throws InputError if that is no measurements file, or one of
  /// another machine, number of ranks or working set.
  Recorder(std::string file, Machine machine, std::optional<Bytes> working_set = std::nullopt);

  [[nodiscard]] bool has_rates() const { return rates_.memory > BytesPerSecond{}; }
  /// Notes the rates, and writes the file.
  void set(const Rates& rates);

  /// Also for another scenario, or none.
  [[nodiscard]] bool has(const Experiment& experiment) const;

  /// Adds a row. All rows are written to a file beside it, which then takes its place. Throws
  /// InputError if that fails, as on a full disk: the file keeps what was written before.
  void add(const Experiment& experiment, const Timed& timed);

 private:
  struct Row {
    std::vector<std::int64_t> sizes;
    std::string transposes;
    Bytes bytes;
    Timed timed;
  };
  struct Table {
    std::string kind, operation;
    std::string scenario;              ///< whose shapes they are; "" of a sweep
    std::vector<std::string> columns;  ///< of the sizes
    std::vector<Row> rows;
  };
  void read();
  static Table read_table(const JsonReader& json);
  [[nodiscard]] std::size_t index_of(
      const Experiment& experiment) const;  ///< of its table, or the end
  [[nodiscard]] Json json() const;
  static Json json(const Table& table);
  void write() const;

  std::string file_;
  std::string date_;
  Machine machine_;
  std::string source_;
  Rates rates_;
  std::vector<Table> tables_;
};

}  // namespace stratagem::calibrate
