// One line for each event.
#include "report/traces/events.hpp"

#include <fmt/format.h>

#include <utility>

namespace stratagem::report {

TraceEvents::TraceEvents(const Json& other_data)
    : text_("{\"displayTimeUnit\":\"ms\",\"otherData\":" + other_data.text() +
            ",\"traceEvents\":[\n") {}

void TraceEvents::add(const std::string& event) {
  text_ += (first_ ? "" : ",\n") + event;
  first_ = false;
}

void TraceEvents::process(std::size_t process, const std::string& name) {
  add(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process,
                  Json(name).text()));
  add(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_sort_index",)"
                  R"("args":{{"sort_index":{0}}}}})",
                  process));
}

void TraceEvents::row(std::size_t process, std::size_t row, const std::string& name) {
  add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                  process, row, Json(name).text()));
}

void TraceEvents::slice(const TracePlace& begin, double duration, const std::string& name,
                        const std::string& arguments) {
  add(fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},"name":{},"args":{{{}}}}})",
      begin.process, begin.row, begin.at, duration, Json(name).text(), arguments));
}

void TraceEvents::counter(std::size_t process, double at, const std::string& name,
                          const std::string& arguments) {
  add(fmt::format(R"({{"ph":"C","pid":{},"ts":{:.6f},"name":{},"args":{{{}}}}})", process, at,
                  Json(name).text(), arguments));
}

void TraceEvents::arrow(const std::string& name, const TracePlace& from, const TracePlace& to) {
  const auto end = [&](const char* phase, const TracePlace& place) {
    add(fmt::format(R"({{{},"id":{},"cat":"message","pid":{},"tid":{},"ts":{:.6f},"name":{}}})",
                    phase, arrows_, place.process, place.row, place.at, Json(name).text()));
  };
  end(R"("ph":"s")", from);
  end(R"("ph":"f","bp":"e")", to);  // "e": it points at the bar in which it ends
  ++arrows_;
}

std::string TraceEvents::text() { return std::move(text_) + "\n]}\n"; }

}  // namespace stratagem::report
