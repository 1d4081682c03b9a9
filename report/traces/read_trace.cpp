// Events by process; places in the program put them in order.
#include "report/traces/read_trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/json_reader.hpp"

namespace stratagem::report {
namespace {

using Row = std::pair<std::int64_t, std::int64_t>;  // process, thread

TracedTask task_of(const JsonReader& event, const std::map<Row, std::string>& rows) {
  const JsonReader arguments = event.at("args");
  const auto row = rows.find({event.at("pid").whole_number(), event.at("tid").whole_number()});
  if (row == rows.end()) event.fail("a task in a row that was named before");
  return {.name = event.at("name").text(),
          .block = arguments.at("block").text(),
          .cell = arguments.at("cell").text(),
          .kind = arguments.at("kind").text(),
          .stream = row->second,
          .begin = event.at("ts").number() / 1e6,
          .duration = event.at("dur").number() / 1e6};
}

TraceOf described(const JsonReader& reader) {
  TraceOf of{.run = reader.at("run").text(),
             .provenance = reader.at("provenance").text(),
             .iteration = Seconds{reader.at("iteration_time_s").number()}};
  for (const JsonReader& peak : reader.at("peak_live_bytes").elements())
    of.peaks.push_back(Bytes{peak.number()});
  return of;
}

/// Traces may begin before their first tasks do.
void count_from_first(std::vector<std::vector<TracedTask>>& devices) {
  double first = std::numeric_limits<double>::infinity();
  for (const std::vector<TracedTask>& tasks : devices) {
    for (const TracedTask& task : tasks) first = std::min(first, task.begin);
  }
  for (std::vector<TracedTask>& tasks : devices) {
    for (TracedTask& task : tasks) task.begin -= first;
  }
}

}  // namespace

Trace read_trace(const std::string& file) {
  const JsonReader reader = JsonReader::from_file(file);
  if (!reader.is_object() || !reader.has("otherData") || !reader.at("otherData").has("schema"))
    reader.fail("a trace that simulate or execute wrote");
  Trace trace{.file = file, .of = described(reader.at("otherData")), .devices = {}};
  std::map<Row, std::string> rows;
  std::map<std::int64_t, std::map<std::int64_t, TracedTask>> tasks;  // by process and place
  for (const JsonReader& event : reader.at("traceEvents").elements()) {
    const std::string phase = event.at("ph").text();
    if (phase == "M" && event.at("name").text() == "thread_name")
      rows[{event.at("pid").whole_number(), event.at("tid").whole_number()}] =
          event.at("args").at("name").text();
    if (phase != "X" || !event.at("args").has("task")) continue;
    const std::int64_t place = event.at("args").at("task").whole_number();
    tasks[event.at("pid").whole_number()].emplace(place, task_of(event, rows));
  }
  for (const JsonReader& process : reader.at("otherData").at("process_of_device").elements()) {
    trace.process_of_device.push_back(static_cast<int>(process.whole_number()));
    if (trace.process_of_device.back() < 0)
      process.fail("a process for every device: write the trace without --trace-devices");
    trace.devices.emplace_back();
    for (const auto& [place, task] : tasks[process.whole_number()])
      trace.devices.back().push_back(task);
  }
  count_from_first(trace.devices);
  return trace;
}

}  // namespace stratagem::report
