// Reads what was measured before, adds to it, and replaces the file as a whole.
#include "calibrate/measure/recorder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::calibrate {
namespace {

/// What stands behind the sizes of a row.
const std::vector<std::string> common = {"bytes", "time us", "spread", "repeats"};

}  // namespace

Recorder::Recorder(std::string file, Machine machine)
    : file_(std::move(file)), date_(today()), machine_(std::move(machine)) {
  if (std::filesystem::exists(file_)) read();
}

Recorder::Table Recorder::read_table(const JsonReader& json) {
  Table table{.kind = json.at("kind").text()};
  if (const auto operation = json.find("operation")) table.operation = operation->text();
  const auto columns = json.at("columns").elements();
  const bool products = table.kind == "gemm";
  const std::size_t sizes = products ? 4 : 2;
  const std::size_t behind = sizes + (products ? 1 : 0);
  if (columns.size() != behind + common.size())
    json.at("columns").fail("the columns that `calibrate measure` writes", "");
  for (std::size_t c = 0; c < sizes; ++c) table.columns.push_back(columns[c].text());
  for (const JsonReader& row : json.at("rows").elements()) {
    const auto cells = row.elements();
    if (cells.size() != columns.size()) row.fail("a value for every column", row.dump());
    Row read;
    for (std::size_t c = 0; c < sizes; ++c) read.sizes.push_back(cells[c].at_least(1));
    if (products) read.transposes = cells[sizes].text();
    read.bytes = Bytes{cells[behind].number()};
    read.timed = {.median = Seconds{cells[behind + 1].number() * 1e-6},
                  .spread = cells[behind + 2].number(),
                  .repeats = static_cast<int>(cells[behind + 3].at_least(1))};
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
  date_ = json.at("date").text();
  rates_ = {.fp32 = device.at("peak").at("fp32").quantity<FlopsPerSecond>(),
            .memory = device.at("memory_bandwidth").quantity<BytesPerSecond>()};
  for (const JsonReader& table : json.at("tables").elements()) tables_.push_back(read_table(table));
}

void Recorder::set(const Rates& rates) {
  rates_ = rates;
  write();
}

std::size_t Recorder::index_of(const Experiment& experiment) const {
  const auto found = std::ranges::find_if(tables_, [&](const Table& table) {
    return table.kind == experiment.kind && table.operation == experiment.operation;
  });
  return static_cast<std::size_t>(found - tables_.begin());
}

bool Recorder::has(const Experiment& experiment) const {
  const std::size_t table = index_of(experiment);
  return table < tables_.size() && std::ranges::any_of(tables_[table].rows, [&](const Row& row) {
           return row.sizes == experiment.sizes && row.transposes == experiment.transposes;
         });
}

void Recorder::add(const Experiment& experiment, const Timed& timed) {
  const std::size_t table = index_of(experiment);
  if (table == tables_.size()) {
    tables_.push_back({.kind = experiment.kind,
                       .operation = experiment.operation,
                       .columns = experiment.columns});
  }
  tables_[table].rows.push_back({.sizes = experiment.sizes,
                                 .transposes = experiment.transposes,
                                 .bytes = experiment.bytes,
                                 .timed = timed});
  write();
}

Json Recorder::json(const Table& table) {
  const bool products = table.kind == "gemm";
  Json columns = Json::array(), rows = Json::array();
  for (const std::string& column : table.columns) columns.push(column);
  if (products) columns.push("transposes");
  for (const std::string& column : common) columns.push(column);
  for (const Row& row : table.rows) {
    Json cells = Json::array();
    for (const std::int64_t size : row.sizes) cells.push(size);
    if (products) cells.push(row.transposes);
    cells.push(row.bytes.value).push(row.timed.median.value * 1e6);
    cells.push(row.timed.spread).push(row.timed.repeats);
    rows.push(cells);
  }
  Json json = Json::object();
  json.set("kind", table.kind);
  if (!products) json.set("operation", table.operation);
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
      .set("memory", to_text(machine_.memory));
  Json tables = Json::array();
  for (const Table& table : tables_) tables.push(json(table));
  Json file = Json::object();
  file.set("schema", 1).set("device", device).set("host", machine_.host).set("date", date_);
  file.set("source", "stratagem calibrate measure --backend cpu")
      .set("status", "measured")
      .set("note",
           "One core; peak and memory_bandwidth are a large product's and a large sum's rates, "
           "measured. "
           "Times are medians, spread half of the 95 % confidence interval relative to them.")
      .set("tables", tables);
  return file;
}

void Recorder::write() const {
  const std::string draft = file_ + ".part";
  std::ofstream out(draft, std::ios::binary);
  out << json().text(1) << '\n';
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(draft, file_, error);
  if (!out || error)
    throw InputError(file_, "", "a file that can be written", error ? error.message() : draft);
}

}  // namespace stratagem::calibrate
