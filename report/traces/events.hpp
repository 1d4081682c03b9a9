// Chrome trace events, which Perfetto reads.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_writer.hpp"

namespace stratagem::report {

/// A place in a trace: a row of a process, and microseconds.
struct TracePlace {
  std::size_t process = 0, row = 0;
  double at = 0;
};

/// A trace under construction, written event by event, since timelines are long. `arguments` are
/// members of a JSON object, without its brackets.
class TraceEvents {
 public:
  /// "otherData" says what the trace is of.
  explicit TraceEvents(const Json& other_data);

  /// Processes stand below each other in the order of their numbers.
  void process(std::size_t process, const std::string& name);
  void row(std::size_t process, std::size_t row, const std::string& name);
  /// A bar that begins at the place, and is so many microseconds long.
  void slice(const TracePlace& begin, double duration, const std::string& name,
             const std::string& arguments);
  /// New values of the members that are named; others keep theirs. Perfetto draws each on its own.
  void counter(std::size_t process, double at, const std::string& name,
               const std::string& arguments);
  /// From a bar to another; the places lie within them.
  void arrow(const std::string& name, const TracePlace& from, const TracePlace& to);

  /// The trace; the last call.
  std::string text();

 private:
  void add(const std::string& event);

  std::string text_;
  bool first_ = true;
  std::size_t arrows_ = 0;
};

}  // namespace stratagem::report
