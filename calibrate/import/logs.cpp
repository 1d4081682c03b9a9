// Writes runs of nccl-tests as a file of measurements.
#include <algorithm>
#include <set>
#include <sstream>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "calibrate/import/nccl_log.hpp"
#include "calibrate/nccl_tests.hpp"
#include "cost/nccl/constants.hpp"

namespace stratagem::calibrate {
namespace {

/// The one value that all logs have, and at least one of them says; `otherwise` where none does.
std::string common(const std::vector<NcclLog>& logs, std::string NcclLog::*field,
                   const std::string& expected, std::string otherwise) {
  std::string found;
  for (const NcclLog& log : logs) {
    if ((log.*field).empty()) continue;
    if (!found.empty() && found != log.*field) {
      const std::string others = std::string(" as in the other logs: ").append(found);
      throw InputError(log.file, "", expected + others, log.*field);
    }
    found = log.*field;
  }
  return found.empty() ? std::move(otherwise) : found;
}

cost::CollectiveKind common_collective(const std::vector<NcclLog>& logs) {
  const NcclTest& test = nccl_test(logs.front().collective);
  for (const NcclLog& log : logs) {
    if (log.collective == test.kind) continue;
    throw InputError(log.file, "",
                     "a log of " + std::string(test.program) + ", as the first: one table each",
                     nccl_test(log.collective).program);
  }
  return test.kind;
}

}  // namespace

ImportedLogs import_logs(const std::vector<NcclLog>& logs, const Datasheet& sheet,
                         const std::string& cluster, const std::string& version,
                         const std::string& csv_file) {
  expects(!logs.empty(), "at least one log");
  const std::string gpu = common(logs, &NcclLog::gpu, "the GPU", sheet.gpu);
  const std::string nccl = common(logs, &NcclLog::version, "the version of NCCL", version);
  if (!cost::nccl::is_version(nccl)) {
    throw InputError(logs.front().file, "",
                     "the version of NCCL (--nccl), as \"2.18.6\", since no log says it", nccl);
  }
  const cost::CollectiveKind collective = common_collective(logs);
  constexpr std::size_t longest = 15;  // of a name in the CSV
  const std::string name = sheet.name.substr(0, longest);
  std::ostringstream csv;
  csv.precision(12);
  csv << "gpu,ranks,bytes,out_of_place_us,in_place_us\n";
  std::set<int> ranks;
  std::string files;
  for (const NcclLog& log : logs) {
    ranks.insert(log.ranks);
    files += (files.empty() ? "" : ", ") + log.file;
    for (const NcclLog::Row& row : log.rows) {
      csv << name << ',' << log.ranks << ',' << row.size.value << ',' << row.out_of_place / 1_us
          << ',' << row.in_place / 1_us << '\n';
    }
  }
  Json fitted = Json::array();
  for (const int number : ranks) fitted.push(number);
  Json table = Json::object();
  table.set("kind", "nccl_" + cost::to_text(collective))
      .set("timing", "kernel")
      .set("cluster", cluster);
  table.set("version", nccl).set("file", csv_file).set("gpu", name).set("fitted_ranks", fitted);
  Json json = Json::object();
  json.set("schema", 1).set("device", measured_device(sheet, gpu));
  json.set("source", "nccl-tests, " + std::string(nccl_test(collective).program) + ": " + files)
      .set("status", "measured");
  json.set("tables", Json::array().push(std::move(table)));
  return {json.text(2) + "\n", csv.str()};
}

}  // namespace stratagem::calibrate
