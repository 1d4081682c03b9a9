// A file of GPU measurements that grows row by row. It does not depend on CUDA: timings are passed
// in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "calibrate/measure/experiment.hpp"
#include "calibrate/measure/gpu_collectives.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "kernels/device.hpp"

namespace stratagem::calibrate {

/// The rates that shares are relative to.
struct GpuRates {
  std::map<std::string, FlopsPerSecond> peak;  ///< by data type
  BytesPerSecond memory;
};

/// The facts of a file besides its tables.
struct GpuFileHeader {
  kernels::Device device;
  GpuRates rates;
  std::string cuda;  ///< "CUDA 13.0, driver for 13.0"
  std::string note;
  Machine machine;
};

/// The whole file is written anew after every row.
class GpuFile {
 public:
  /// The file also has the tables of `collectives`, if there are any.
  GpuFile(std::string name, GpuFileHeader header, GpuCollectiveTables collectives);

  /// Adds a row to the table of this kind, operation and type ("" for kinds without a type).
  void add(const Experiment& what, const std::string& type, const Timed& timed);
  /// A row that is a time alone.
  void add_time(const Experiment& what, const Timed& timed);
  void add(const GpuCollective& collective, const Timed& timed);
  /// Says in the note that there is no row of this: the host was never ahead of the GPU.
  void leave_out(const Experiment& what, const std::string& type);

 private:
  struct Table {
    std::string kind, operation, type;
    Json columns;
    Json rows = Json::array();
  };
  void add(const std::string& kind, const std::string& operation, const std::string& type,
           const Json& columns, const Json& row);
  [[nodiscard]] Json json() const;
  void write() const;

  std::string name_;
  GpuFileHeader header_;
  GpuCollectiveTables collectives_;
  std::vector<Table> tables_;
  std::vector<std::string> left_out_;
};

}  // namespace stratagem::calibrate
