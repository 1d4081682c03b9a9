// What nccl-tests prints or writes as JSON, as measurements.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/datasheet.hpp"
#include "cost/ring.hpp"

namespace stratagem::calibrate {

/// One run of a program of nccl-tests on one server.
struct NcclLog {
  /// `size` is what the program prints, all that a rank sends or receives: an all-gather's result,
  /// what an all-to-all has on each rank.
  struct Row {
    Bytes size;
    Seconds out_of_place;
    Seconds in_place;
  };
  std::string file;
  std::string gpu;      ///< "NVIDIA A100-SXM4-40GB"
  std::string version;  ///< of NCCL, "" where the log does not say it
  int ranks = 0;
  cost::CollectiveKind collective = cost::CollectiveKind::all_reduce;
  std::vector<Row> rows;
};

/// Reads the text that a program of nccl-tests prints, or the file of its option -J. `program` is
/// the one that it is of where the log does not say it, as before 2.17; "": all_reduce_perf. Throws
/// InputError, with the line or the JSON path, for what is neither, for programs that nccl_tests()
/// has not, for several servers, and where size, time, algorithm and bus bandwidth do not belong to
/// each other.
NcclLog read_nccl_log(const std::string& file, const std::string& program = "");

/// A file of measurements and the table that it names.
struct ImportedLogs {
  std::string json;
  std::string csv;
};

/// The logs as a table "nccl_all_reduce", or of another collective, of `cluster` (a preset), with
/// the rates of `sheet`; `csv_file` is the name by which the JSON finds the CSV. `version` is taken
/// where the logs do not say it. Throws InputError for logs of several GPUs, versions or
/// collectives, or of none.
ImportedLogs import_logs(const std::vector<NcclLog>& logs, const Datasheet& sheet,
                         const std::string& cluster, const std::string& version,
                         const std::string& csv_file);

}  // namespace stratagem::calibrate
