// A file of measurements of GPUs while it grows. Knows nothing of CUDA: what was timed comes in.
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

/// What shares are taken of.
struct GpuRates {
  std::map<std::string, FlopsPerSecond> peak;  ///< by data type
  BytesPerSecond memory;
};

/// What stands in a file besides its tables.
struct GpuFileHeader {
  kernels::Device device;
  GpuRates rates;
  std::string cuda;  ///< "CUDA 13.0, driver for 13.0"
  std::string note;
  Machine machine;
};

/// Written anew, as a whole, after every row.
class GpuFile {
 public:
  /// `collectives` stand in it, too, where there are some.
  GpuFile(std::string name, GpuFileHeader header, GpuCollectiveTables collectives);

  /// A row of the table of this kind, operation and type ("" of what has none).
  void add(const Experiment& what, const std::string& type, const Timed& timed);
  /// A row that is a time alone.
  void add_time(const Experiment& what, const Timed& timed);
  void add(const GpuCollective& collective, const Timed& timed);

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
};

}  // namespace stratagem::calibrate
