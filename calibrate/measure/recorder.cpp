// Reads what was measured before, adds to it, and replaces the file as a whole.
#include "calibrate/measure/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"
#include "base/write_file.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {
namespace {

/// What a row has, by its kind: how many sizes, and what stands behind them.
struct Columns {
  explicit Columns(const std::string& kind)
      : products(kind == "gemm"), collective(kind.starts_with("mpi_")) {}

  [[nodiscard]] std::size_t sizes() const { return products ? 4 : collective ? 3 : 2; }
  [[nodiscard]] std::vector<std::string> behind() const {
    std::vector<std::string> names = {"time us", "spread", "repeats"};
    if (!collective) names.insert(names.begin(), "bytes");  // collectives have a size
    if (products) names.insert(names.begin(), "transposes");
    if (!collective) names.emplace_back("pace us");
    return names;
  }

  bool products, collective;
};

/// A number of the file that is this machine's too; files of one core have none.
void check_number(const JsonReader& json, const char* key, int here) {
  const auto found = json.find(key);
  const std::int64_t number = found ? found->at_least(1) : 1;
  if (number != here)
    (found ? *found : json)
        .fail(std::to_string(here) + " " + key + ", as now; or name another file",
              std::to_string(number) + " " + key);
}

}  // namespace

Recorder::Recorder(std::string file, Machine machine, std::optional<Bytes> working_set)
    : file_(std::move(file)),
      date_(today()),
      machine_(std::move(machine)),
      source_("stratagem calibrate measure --backend cpu") {
  if (working_set) source_ += " --working-set '" + to_text(*working_set) + "'";
  if (!std::filesystem::exists(file_)) return;
  if (!std::filesystem::is_regular_file(file_))
    throw InputError(file_, "", "a plain file, or none yet", "");
  static_cast<void>(read_measurements(file_));  // what a fit would refuse is not gone on with
  read();
}

Recorder::Table Recorder::read_table(const JsonReader& json) {
  Table table{.kind = json.at("kind").text()};
  table.operation = read_or_empty(json, "operation", &JsonReader::text);
  table.scenario = read_or_empty(json, "scenario", &JsonReader::text);
  const auto columns = json.at("columns").elements();
  const Columns kind(table.kind);
  const std::size_t sizes = kind.sizes();
  if (columns.size() != sizes + kind.behind().size())
    json.at("columns").fail("the columns that `calibrate measure` writes", "");
  for (std::size_t c = 0; c < sizes; ++c) table.columns.push_back(columns[c].text());
  for (const JsonReader& row : json.at("rows").elements()) {
    const auto cells = row.elements();
    if (cells.size() != columns.size()) row.fail("a value for every column", row.dump());
    Row read;
    for (std::size_t c = 0; c < sizes; ++c) read.sizes.push_back(cells[c].at_least(1));
    auto cell = cells.begin() + static_cast<std::ptrdiff_t>(sizes);
    if (kind.products) read.transposes = (cell++)->text();
    if (!kind.collective) read.bytes = Bytes{(cell++)->number()};
    read.timed = {.median = Seconds{cell[0].number() * 1e-6},
                  .spread = cell[1].number(),
                  .repeats = static_cast<int>(cell[2].at_least(1))};
    if (!kind.collective) read.timed.pace = Seconds{cell[3].number() * 1e-6};
    table.rows.push_back(std::move(read));
  }
  return table;
}

void Recorder::read() {
  const JsonReader json = JsonReader::from_file(file_);
  const JsonReader device = json.at("device");
  const JsonReader gpu = device.at("gpu");
  if (gpu.text() != machine_.processor)
    gpu.fail("\"" + machine_.processor + "\", this machine; or name another file", gpu.dump());
  const JsonReader host = json.at("host");
  if (host.text() != machine_.host)
    host.fail("\"" + machine_.host + "\", this machine; or name another file", host.dump());
  check_number(json, "ranks", machine_.ranks);
  check_number(json, "servers", machine_.servers);
  const JsonReader source = json.at("source");
  if (source.text() != source_) source.fail("\"" + source_ + "\", as now; or name another file");
  date_ = json.at("date").text();
  if (!device.has("pace"))
    device.fail("the pace of this core, which older files do not have; name another file");
  rates_ = {.fp32 = device.at("peak").at("fp32").quantity<FlopsPerSecond>(),
            .memory = device.at("memory_bandwidth").quantity<BytesPerSecond>(),
            .pace = device.at("pace").quantity<Seconds>()};
  for (const JsonReader& table : json.at("tables").elements()) tables_.push_back(read_table(table));
}

void Recorder::set(const Rates& rates) {
  rates_ = rates;
  write();
}

std::size_t Recorder::index_of(const Experiment& experiment) const {
  const auto found = std::ranges::find_if(tables_, [&](const Table& table) {
    return table.kind == experiment.kind && table.operation == experiment.operation &&
           table.scenario == experiment.scenario;
  });
  return static_cast<std::size_t>(found - tables_.begin());
}

bool Recorder::has(const Experiment& experiment) const {
  return std::ranges::any_of(tables_, [&](const Table& table) {
    if (table.kind != experiment.kind || table.operation != experiment.operation) return false;
    return std::ranges::any_of(table.rows, [&](const Row& row) {
      return row.sizes == experiment.sizes && row.transposes == experiment.transposes;
    });
  });
}

void Recorder::add(const Experiment& experiment, const Timed& timed) {
  const std::size_t table = index_of(experiment);
  if (table == tables_.size()) {
    tables_.push_back({.kind = experiment.kind,
                       .operation = experiment.operation,
                       .scenario = experiment.scenario,
                       .columns = experiment.columns});
  }
  tables_[table].rows.push_back({.sizes = experiment.sizes,
                                 .transposes = experiment.transposes,
                                 .bytes = experiment.bytes,
                                 .timed = timed});
  write();
}

Json Recorder::json(const Table& table) {
  const Columns kind(table.kind);
  Json columns = Json::array(), rows = Json::array();
  for (const std::string& column : table.columns) columns.push(column);
  for (const std::string& column : kind.behind()) columns.push(column);
  for (const Row& row : table.rows) {
    Json cells = Json::array();
    for (const std::int64_t size : row.sizes) cells.push(size);
    if (kind.products) cells.push(row.transposes);
    if (!kind.collective) cells.push(row.bytes.value);
    cells.push(row.timed.median.value * 1e6).push(row.timed.spread).push(row.timed.repeats);
    if (!kind.collective) cells.push(row.timed.pace.value * 1e6);
    rows.push(cells);
  }
  Json json = Json::object();
  json.set("kind", table.kind);
  if (!table.operation.empty()) json.set("operation", table.operation);
  if (!table.scenario.empty()) json.set("scenario", table.scenario);
  json.set("type", "fp32").set("timing", "kernel").set("columns", columns).set("rows", rows);
  return json;
}

Json Recorder::json() const {
  Json device = Json::object();
  device.set("gpu", machine_.processor)
      .set("architecture", machine_.processor)
      .set("multiprocessors", 1)
      .set("peak", Json::object().set("fp32", to_text(rates_.fp32)))
      .set("memory_bandwidth", to_text(rates_.memory))
      .set("pace", to_text(rates_.pace))
      .set("memory", to_text(machine_.memory));
  Json tables = Json::array();
  for (const Table& table : tables_) tables.push(json(table));
  Json file = Json::object();
  file.set("schema", 1).set("device", device).set("host", machine_.host).set("date", date_);
  file.set("ranks", machine_.ranks).set("servers", machine_.servers).set("cores", machine_.cores);
  file.set("source", source_)
      .set("status", "measured")
      .set("note",
           "One core a rank, all ranks at once; peak and memory_bandwidth are a large product's "
           "and a large sum's rates, "
           "measured. "
           "Times are medians, spread half of the 95 % confidence interval relative to them, pace "
           "what a product of 256 x 256 x 256 took meanwhile.")
      .set("tables", tables);
  return file;
}

void Recorder::write() const { write_file(file_, json().text(1) + "\n"); }

}  // namespace stratagem::calibrate
