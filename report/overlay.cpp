// Two traces in one: rows of a device below each other.
#include <fmt/format.h>

#include <map>

#include "report/comparison.hpp"

namespace stratagem::report {
namespace {

class Overlay {
 public:
  std::string write(const Trace& predicted, const Trace& measured) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"run\":" + Json(predicted.of.run).text() +
            "},\"traceEvents\":[\n";
    for (std::size_t d = 0; d < predicted.devices.size(); ++d) {
      add(2 * d, fmt::format("device {}, predicted", d), predicted.devices[d]);
      add(2 * d + 1, fmt::format("device {}, measured", d), measured.devices[d]);
    }
    return text_ + "\n]}\n";
  }

 private:
  void event(const std::string& line) {
    text_ += (first_ ? "" : ",\n") + line;
    first_ = false;
  }

  void add(std::size_t process, const std::string& name, const std::vector<TracedTask>& tasks) {
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})",
                      process, name));
    event(fmt::format(
        R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", process,
        process));
    std::map<std::string, std::size_t> rows;
    for (const TracedTask& task : tasks) {
      const auto [row, fresh] = rows.try_emplace(task.stream, rows.size());
      if (fresh)
        event(fmt::format(
            R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process,
            row->second, Json(task.stream).text()));
      event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},"name":{},)"
                        R"("args":{{"block":{},"cell":{},"kind":{}}}}})",
                        process, row->second, task.begin * 1e6, task.duration * 1e6,
                        Json(task.name).text(), Json(task.block).text(), Json(task.cell).text(),
                        Json(task.kind).text()));
    }
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string overlay(const Trace& predicted, const Trace& measured) {
  return Overlay().write(predicted, measured);
}

}  // namespace stratagem::report
