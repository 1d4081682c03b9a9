// Runs experiments on a GPU one after another, and writes all that is known after each.
#include "calibrate/measure/measure_cuda.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/json_writer.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/datasheet.hpp"
#include "calibrate/measure/cuda_experiments.hpp"
#include "calibrate/measure/machine.hpp"
#include "kernels/elementwise.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Stream;

/// As datasheets call them.
std::string architecture_of(const kernels::Device& device) {
  if (device.major == 7) return device.minor < 5 ? "volta" : "turing";
  if (device.major == 8) return device.minor < 9 ? "ampere" : "ada";
  if (device.major == 9) return "hopper";
  return device.major >= 10 ? "blackwell" : "unknown";
}

/// One file of measurements while it grows.
class CudaFile {
 public:
  CudaFile(std::string name, Json device, std::string note)
      : name_(std::move(name)), device_(std::move(device)), note_(std::move(note)) {}

  /// A row of the table of this kind, operation and type.
  void add(const Experiment& what, const std::string& type, const Timed& timed) {
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

  /// A row that is a time alone.
  void add_time(const std::string& kind, const Timed& timed) {
    add(kind, "", "", Json::array().push("time us"), Json::array().push(timed.median.value * 1e6));
  }

 private:
  struct Table {
    std::string kind, operation, type;
    Json columns;
    Json rows = Json::array();
  };

  void add(const std::string& kind, const std::string& operation, const std::string& type,
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

  [[nodiscard]] Json json() const {
    Json tables = Json::array();
    for (const Table& table : tables_) {
      Json one = Json::object();
      one.set("kind", table.kind);
      if (!table.operation.empty()) one.set("operation", table.operation);
      if (!table.type.empty()) one.set("type", table.type);
      tables.push(
          one.set("timing", "kernel").set("columns", table.columns).set("rows", table.rows));
    }
    return Json::object()
        .set("schema", 1)
        .set("device", device_)
        .set("host", this_machine().host + ", CUDA " + kernels::runtime_version() +
                         ", driver for " + kernels::driver_version())
        .set("date", today())
        .set("source", "stratagem calibrate measure --backend cuda")
        .set("status", "measured")
        .set("note", note_)
        .set("tables", tables);
  }

  void write() const {
    const std::string draft = name_ + ".part";
    std::ofstream out(draft, std::ios::binary);
    out << json().text(1) << '\n';
    out.close();
    std::error_code error;
    if (out) std::filesystem::rename(draft, name_, error);
    if (!out || error)
      throw InputError(name_, "", "a file that can be written", error ? error.message() : draft);
  }

  std::string name_;
  Json device_;
  std::string note_;
  std::vector<Table> tables_;
};

/// What shares are taken of.
struct CudaRates {
  std::map<std::string, FlopsPerSecond> peak;
  BytesPerSecond memory;
};

std::vector<std::string> types_of(const kernels::Device& device) {
  if (!device.at_least(8)) return {"fp16", "fp32"};
  return {"fp16", "bf16", "fp32"};
}

CudaRates rates_of(const std::string& datasheet, const Stream& stream,
                   const CudaStopwatch& stopwatch) {
  CudaRates rates;
  if (!datasheet.empty()) {
    const Datasheet sheet = read_datasheet(datasheet);
    for (const auto& [type, peak] : sheet.peak) rates.peak[type] = peak.value;
    for (const std::string& type : types_of(stream.device())) {
      if (!rates.peak.contains(type))
        throw InputError(datasheet, "/peak/" + type, "a rate of this type, which is measured", "");
    }
    rates.memory = sheet.memory_bandwidth.value;
    return rates;
  }
  const Effort effort{.budget = Seconds{2}};
  for (const std::string& type : types_of(stream.device())) {
    const CudaExperiments of = cuda_experiments(stream, type, Sweep::quick);
    rates.peak[type] = of.peak.what.flops / stopwatch.time_of(of.peak.launch, effort).median;
    rates.memory = of.bandwidth.what.bytes / stopwatch.time_of(of.bandwidth.launch, effort).median;
  }
  return rates;
}

Json json_of(const kernels::Device& device, const CudaRates& rates) {
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

std::string more_beside(const std::string& file) {
  return std::filesystem::path(file).replace_extension(".more.json").string();
}

/// Copies both ways through memory that is pinned, and within the GPU.
void measure_copies(const Stream& stream, const CudaStopwatch& stopwatch, const Effort& effort,
                    CudaFile& to) {
  constexpr std::size_t largest = std::size_t{256} << 20;
  const kernels::PinnedArray<std::byte> host(largest);
  const kernels::DeviceArray<std::byte> device(largest), other(largest);
  const auto measure = [&](const char* way, const std::byte* from, std::byte* into,
                           std::size_t bytes) {
    const Experiment what{.kind = "copy",
                          .operation = way,
                          .columns = {"size"},
                          .sizes = {static_cast<std::int64_t>(bytes)},
                          .transposes = "",
                          .flops = {},
                          .bytes = Bytes{static_cast<double>(bytes)},
                          .prepare = {}};
    to.add(what, "",
           stopwatch.time_of([&] { kernels::copy_bytes(stream, from, into, bytes); }, effort));
  };
  for (std::size_t bytes = 4096; bytes <= largest; bytes *= 8) {
    measure("host to device", host.data(), device.data(), bytes);
    measure("device to host", device.data(), host.data(), bytes);
    measure("within the device", device.data(), other.data(), bytes);
  }
}

/// Tiny kernels: from one to the next on the GPU, and what the host takes to ask for one.
void measure_launches(const Stream& stream, const CudaStopwatch& stopwatch, const Effort& effort,
                      CudaFile& gaps, CudaFile& more) {
  const kernels::DeviceArray<float> one(1);
  kernels::fill_bytes(stream, one.data(), 0, sizeof(float));
  constexpr int launches = 64;
  const auto launch = [&] {
    for (int i = 0; i < launches; ++i) kernels::add<float>(stream, one, one, one);
  };
  const auto each = [](Timed all) {
    all.median = all.median / launches;
    return all;
  };
  gaps.add_time("kernel_gap", each(stopwatch.time_of(launch, effort)));
  stream.synchronise();
  more.add_time("host_launch", each(time_of(launch, effort)));
  stream.synchronise();
}

}  // namespace

std::size_t measure_cuda(const std::string& file, const std::string& datasheet, Sweep sweep,
                         const std::function<void(const Progress&)>& tell) {
  if (kernels::devices().empty())
    throw kernels::DeviceError("no GPU: " + kernels::why_no_devices());
  const Stream stream;
  const CudaStopwatch stopwatch(stream);
  const Effort effort{.budget = sweep == Sweep::quick ? Seconds{0.1} : Seconds{0.5}};
  const Json device = json_of(stream.device(), rates_of(datasheet, stream, stopwatch));
  const std::string rates = datasheet.empty()
                                ? "peak and memory_bandwidth are a large product's and a large "
                                  "sum's rates, measured. "
                                : "peak and memory_bandwidth are those of " + datasheet + ". ";
  const std::string note =
      rates + "Times are medians, spread half of the 95 % confidence interval relative to them.";
  CudaFile fitted(file, device, note), more(more_beside(file), device, note);
  measure_launches(stream, stopwatch, effort, fitted, more);
  measure_copies(stream, stopwatch, effort, more);
  std::size_t done = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> types = types_of(stream.device());
  for (std::size_t t = 0; t < types.size(); ++t) {
    const CudaExperiments of = cuda_experiments(stream, types[t], sweep);
    const std::size_t of_type = of.all.size() + of.attention.size();
    for (std::size_t i = 0; i < of_type; ++i, ++done) {
      const bool fused = i >= of.all.size();
      const CudaExperiment& next = fused ? of.attention[i - of.all.size()] : of.all[i];
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      const auto left = static_cast<double>(of_type * (types.size() - t) - i);
      tell({.done = done,
            .all = of_type * types.size(),
            .left =
                done == 0 ? Seconds{} : Seconds{spent.count() / static_cast<double>(done) * left},
            .name = next.type + " " + next.what.name()});
      (fused ? more : fitted).add(next.what, next.type, stopwatch.time_of(next.launch, effort));
    }
  }
  return done;
}

}  // namespace stratagem::calibrate
