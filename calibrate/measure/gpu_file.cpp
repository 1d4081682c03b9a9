// Keeps rows by table, and writes the whole file after each row.
#include "calibrate/measure/gpu_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/quantity_text.hpp"
#include "base/write_file.hpp"

namespace stratagem::calibrate {
namespace {

/// As datasheets call them.
std::string architecture_of(const kernels::Device& device) {
  if (device.major == 7) return device.minor < 5 ? "volta" : "turing";
  if (device.major == 8) return device.minor < 9 ? "ampere" : "ada";
  if (device.major == 9) return "hopper";
  return device.major >= 10 ? "blackwell" : "unknown";
}

Json json_of(const kernels::Device& device, const GpuRates& rates) {
  Json peak = Json::object();
  for (const auto& [type, rate] : rates.peak) peak.set(type, to_text(rate));
  return Json::object()
      .set("gpu", device.name)
      .set("architecture", architecture_of(device))
      .set("multiprocessors", device.multiprocessors)
      .set("peak", peak)
      .set("memory_bandwidth", to_text(rates.memory))
      .set("memory", to_text(device.memory));
}

}  // namespace

GpuFile::GpuFile(std::string name, GpuFileHeader header, GpuCollectiveTables collectives)
    : name_(std::move(name)), header_(std::move(header)), collectives_(std::move(collectives)) {}

void GpuFile::add(const Experiment& what, const std::string& type, const Timed& timed) {
  Json row = Json::array();
  for (const std::int64_t size : what.sizes) row.push(size);
  if (!what.transposes.empty()) row.push(what.transposes);
  row.push(static_cast<std::int64_t>(what.bytes.value))
      .push(timed.median.value * 1e6)
      .push(timed.spread);
  row.push(timed.repeats);
  Json columns = Json::array();
  for (const std::string& column : what.columns) columns.push(column);
  if (!what.transposes.empty()) columns.push("transposes");
  for (const char* column : {"bytes", "time us", "spread", "repeats"}) columns.push(column);
  add(what.kind, what.operation, type, columns, row);
}

void GpuFile::add_time(const Experiment& what, const Timed& timed) {
  add(what.kind, "", "", Json::array().push("time us"),
      Json::array().push(timed.median.value * 1e6));
}

void GpuFile::add(const GpuCollective& collective, const Timed& timed) {
  collectives_.add(collective, timed);
  write();
}

void GpuFile::leave_out(const Experiment& what, const std::string& type) {
  left_out_.push_back((type.empty() ? "" : type + " ") + what.name());
  write();
}

void GpuFile::add(const std::string& kind, const std::string& operation, const std::string& type,
                  const Json& columns, const Json& row) {
  auto table = tables_.begin();
  while (table != tables_.end() &&
         (table->kind != kind || table->operation != operation || table->type != type))
    ++table;
  if (table == tables_.end())
    table = tables_.insert(table, Table{kind, operation, type, columns, Json::array()});
  table->rows.push(row);
  write();
}

Json GpuFile::json() const {
  Json tables = Json::array();
  for (const Table& table : tables_) {
    Json one = Json::object();
    one.set("kind", table.kind);
    if (!table.operation.empty()) one.set("operation", table.operation);
    if (!table.type.empty()) one.set("type", table.type);
    tables.push(one.set("timing", "kernel").set("columns", table.columns).set("rows", table.rows));
  }
  for (const Json& table : collectives_.json()) tables.push(table);
  std::string note = header_.note;
  if (!left_out_.empty())
    note += fmt::format(
        " Left out, since the host took longer to ask for them than the GPU to fill memory: {}.",
        fmt::join(left_out_, "; "));
  return Json::object()
      .set("schema", 1)
      .set("device", json_of(header_.device, header_.rates))
      .set("ranks", header_.machine.ranks)
      .set("servers", header_.machine.servers)
      .set("host", header_.machine.host + ", " + header_.cuda)
      .set("date", today())
      .set("source", "stratagem calibrate measure --backend cuda")
      .set("status", "measured")
      .set("note", note)
      .set("tables", tables);
}

void GpuFile::write() const { write_file(name_, json().text(1) + "\n"); }

}  // namespace stratagem::calibrate
