// Two traces in one: rows of a device below each other.
#include <fmt/format.h>

#include <map>

#include "report/traces/comparison.hpp"
#include "report/traces/events.hpp"

namespace stratagem::report {
namespace {

void add(TraceEvents& events, std::size_t process, const std::string& name,
         const std::vector<TracedTask>& tasks) {
  events.process(process, name);
  std::map<std::string, std::size_t> rows;
  for (const TracedTask& task : tasks) {
    const auto [row, is_new] = rows.try_emplace(task.stream, rows.size());
    if (is_new) events.row(process, row->second, task.stream);
    events.slice({process, row->second, task.begin * 1e6}, task.duration * 1e6, task.name,
                 fmt::format(R"("block":{},"cell":{},"kind":{})", Json(task.block).text(),
                             Json(task.cell).text(), Json(task.kind).text()));
  }
}

}  // namespace

std::string overlay(const Trace& predicted, const Trace& measured) {
  TraceEvents events(Json::object().set("run", predicted.of.run));
  for (std::size_t d = 0; d < predicted.devices.size(); ++d) {
    add(events, 2 * d, fmt::format("device {}, predicted", d), predicted.devices[d]);
    add(events, 2 * d + 1, fmt::format("device {}, measured", d), measured.devices[d]);
  }
  return events.text();
}

}  // namespace stratagem::report
