// What nccl-tests prints or writes as JSON, as measurements.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/datasheet.hpp"

namespace stratagem::calibrate {

/// One run of all_reduce_perf on one server.
struct NcclLog {
  struct Row {
    Bytes size;
    Seconds out_of_place;
    Seconds in_place;
  };
  std::string file;
  std::string gpu;      ///< "NVIDIA A100-SXM4-40GB"
  std::string version;  ///< of NCCL, "" where the log does not say it
  int ranks = 0;
  std::vector<Row> rows;
};

/// Reads the text that all_reduce_perf prints, or the file of its option -J. Throws InputError, with
/// the line or the JSON path, for what is neither, for other collectives, which measurements have no
/// place for, for several servers, and where bus and algorithm bandwidth are not those of an all-reduce.
NcclLog read_nccl_log(const std::string& file);

/// A file of measurements and the table that it names.
struct ImportedLogs {
  std::string json;
  std::string csv;
};

/// The logs as a table "nccl_all_reduce" of `cluster` (a preset), with the rates of `sheet`; `csv_file` is
/// the name by which the JSON finds the CSV. `version` is taken where the logs do not say it. Throws
/// InputError for logs of several GPUs or versions, or of none.
ImportedLogs import_logs(const std::vector<NcclLog>& logs, const Datasheet& sheet,
                         const std::string& cluster, const std::string& version,
                         const std::string& csv_file);

}  // namespace stratagem::calibrate
