// Sums differences over pairs of tasks at the same place of a program.
#include "report/traces/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::report {
namespace {

using Span = std::pair<double, double>;

void check(const Trace& predicted, const Trace& measured) {
  const auto differs = [&](const std::string& where, const std::string& expected,
                           const std::string& found) {
    throw InputError(measured.file, where, expected + ", as in " + predicted.file, found);
  };
  if (predicted.of.run != measured.of.run)
    differs("/otherData/run", "the run \"" + predicted.of.run + "\"", '"' + measured.of.run + '"');
  if (predicted.devices.size() != measured.devices.size())
    differs("", fmt::format("{} devices", predicted.devices.size()),
            std::to_string(measured.devices.size()));
  for (std::size_t d = 0; d < predicted.devices.size(); ++d) {
    const std::string where = fmt::format("device {}", d);
    if (predicted.devices[d].size() != measured.devices[d].size())
      differs(where, fmt::format("{} tasks", predicted.devices[d].size()),
              std::to_string(measured.devices[d].size()));
    for (std::size_t i = 0; i < predicted.devices[d].size(); ++i) {
      const TracedTask& one = predicted.devices[d][i];
      const TracedTask& other = measured.devices[d][i];
      if (one.name != other.name || one.cell != other.cell)
        differs(fmt::format("{}, task {}", where, i), one.name + " of " + one.cell,
                other.name + " of " + other.cell);
    }
  }
}

/// The time that lies in both of two lists of spans, each ascending and without overlaps.
double common(const std::vector<Span>& one, const std::vector<Span>& other) {
  double sum = 0;
  for (std::size_t i = 0, k = 0; i < one.size() && k < other.size();) {
    sum += std::max(
        0.0, std::min(one[i].second, other[k].second) - std::max(one[i].first, other[k].first));
    one[i].second < other[k].second ? ++i : ++k;
  }
  return std::round(sum * 1e12) / 1e12;  // times of traces are whole picoseconds
}

/// Times in which something is under way.
std::vector<Span> joined(std::vector<Span> spans) {
  std::ranges::sort(spans);
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.first <= result.back().second) {
      result.back().second = std::max(result.back().second, span.second);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

constexpr std::string_view compute = "compute";

/// Adds what the streams of one device do to sums by stream; "send forward, group 3" is of "send
/// forward".
void add_streams(const std::vector<TracedTask>& tasks, bool measured,
                 std::map<std::string, ComparedStream>& sums) {
  std::map<std::string, std::vector<Span>> spans;
  for (const TracedTask& task : tasks) {
    const std::string stream = task.stream.substr(0, task.stream.find(','));
    spans[stream].emplace_back(task.begin, task.begin + task.duration);
  }
  const std::vector<Span> computing = joined(spans[std::string(compute)]);
  for (const auto& [stream, list] : spans) {
    const std::vector<Span> busy = joined(list);
    double seconds = 0;
    for (const Span& span : busy) seconds += span.second - span.first;
    const Seconds beside{stream == compute ? 0 : common(busy, computing)};
    ComparedStream& sum = sums[stream];
    (measured ? sum.measured : sum.predicted) += Seconds{seconds};
    (measured ? sum.measured_beside : sum.predicted_beside) += beside;
  }
}

/// Relative to what was measured.
double error(double predicted, double measured) {
  return measured == 0 ? (predicted == 0 ? 0 : INFINITY) : predicted / measured - 1;
}

std::string relative_error_text(double predicted, double measured) {
  return measured == 0 ? "" : fmt::format("{:+.1f} %", 100 * error(predicted, measured));
}

constexpr const char* line = "  {:<44} {:>6} {:>12} {:>12} {:>10}\n";

std::string rows(const std::string& title, const std::vector<ComparedTime>& times) {
  std::string text = fmt::format(line, title, "tasks", "predicted", "measured", "error");
  for (const ComparedTime& time : times)
    text +=
        fmt::format(line, time.name, time.tasks, to_text(time.predicted), to_text(time.measured),
                    relative_error_text(time.predicted.value, time.measured.value));
  return text;
}

Json rows_json(const std::vector<ComparedTime>& times) {
  Json list = Json::array();
  for (const ComparedTime& time : times) {
    Json row = Json::object();
    row.set("name", time.name).set("tasks", time.tasks);
    row.set("predicted_s", time.predicted.value).set("measured_s", time.measured.value);
    row.set("error", error(time.predicted.value, time.measured.value));
    list.push(row);
  }
  return list;
}

Bytes highest(const TraceOf& of) {
  return of.peaks.empty() ? Bytes{} : *std::ranges::max_element(of.peaks);
}

std::vector<ComparedTime> values_of(const std::map<std::string, ComparedTime>& sums) {
  std::vector<ComparedTime> result;
  for (const auto& [name, sum] : sums) {
    result.push_back(sum);
    result.back().name = name;
  }
  return result;
}

double size_of(const ComparedTime& time) { return std::abs(time.difference().value); }

}  // namespace

Comparison compare(const Trace& predicted, const Trace& measured) {
  check(predicted, measured);
  std::map<std::string, ComparedTime> kinds, tasks;
  std::map<std::string, ComparedStream> streams;
  for (std::size_t d = 0; d < predicted.devices.size(); ++d) {
    for (std::size_t i = 0; i < predicted.devices[d].size(); ++i) {
      const TracedTask& one = predicted.devices[d][i];
      const bool alone = one.block.empty() || one.block == one.name;
      const std::string name = alone ? one.name : one.name + " in " + one.block;
      for (ComparedTime* sum : {&kinds[one.kind], &tasks[name]}) {
        ++sum->tasks;
        sum->predicted += Seconds{one.duration};
        sum->measured += Seconds{measured.devices[d][i].duration};
      }
    }
    add_streams(predicted.devices[d], false, streams);
    add_streams(measured.devices[d], true, streams);
  }
  Comparison result{.predicted = predicted.of,
                    .measured = measured.of,
                    .predicted_peak = highest(predicted.of),
                    .measured_peak = highest(measured.of),
                    .kinds = values_of(kinds),
                    .streams = {},
                    .worst = values_of(tasks)};
  std::ranges::stable_sort(result.kinds, std::ranges::greater{}, &ComparedTime::measured);
  std::ranges::stable_sort(result.worst, std::ranges::greater{}, size_of);
  if (result.worst.size() > 10) result.worst.resize(10);
  for (auto& [name, sum] : streams) {
    sum.name = name;
    result.streams.push_back(sum);
  }
  return result;
}

std::string to_text(const Comparison& c) {
  const double predicted = c.predicted.iteration.value, measured = c.measured.iteration.value;
  std::string text = fmt::format("{}: {}, against {}\n", c.predicted.run, c.predicted.provenance,
                                 c.measured.provenance);
  text +=
      fmt::format("  iteration: predicted {}, measured {} ({})\n", to_text(c.predicted.iteration),
                  to_text(c.measured.iteration), relative_error_text(predicted, measured));
  if (c.measured_peak > Bytes{}) {
    const double bytes = c.predicted_peak.value - c.measured_peak.value;
    text += fmt::format("  live bytes at the peak: predicted {:.0f}, measured {:.0f} ({})\n",
                        c.predicted_peak.value, c.measured_peak.value,
                        bytes == 0 ? "the same" : fmt::format("{:+.0f} B", bytes));
  }
  text += "\n" + rows("kind, all devices together", c.kinds);
  text += fmt::format("\n  {:<30} {:>12} {:>12} {:>12} {:>12}\n", "stream", "predicted",
                      "beside comp.", "measured", "beside comp.");
  for (const ComparedStream& stream : c.streams)
    text += fmt::format("  {:<30} {:>12} {:>12} {:>12} {:>12}\n", stream.name,
                        to_text(stream.predicted), to_text(stream.predicted_beside),
                        to_text(stream.measured), to_text(stream.measured_beside));
  return text + "\n" + rows("furthest off", c.worst);
}

Json to_json(const Comparison& c) {
  Json json = Json::object(), iteration = Json::object(), peak = Json::object();
  json.set("schema", 1).set("run", c.predicted.run);
  json.set("provenance", c.measured.provenance);
  iteration.set("predicted_s", c.predicted.iteration.value)
      .set("measured_s", c.measured.iteration.value)
      .set("error", error(c.predicted.iteration.value, c.measured.iteration.value));
  peak.set("predicted", c.predicted_peak.value)
      .set("measured", c.measured_peak.value)
      .set("error", error(c.predicted_peak.value, c.measured_peak.value));
  json.set("iteration", iteration).set("peak_live_bytes", peak);
  Json streams = Json::array();
  for (const ComparedStream& stream : c.streams) {
    Json row = Json::object();
    row.set("name", stream.name)
        .set("predicted_s", stream.predicted.value)
        .set("predicted_beside_s", stream.predicted_beside.value);
    row.set("measured_s", stream.measured.value)
        .set("measured_beside_s", stream.measured_beside.value);
    streams.push(row);
  }
  return json.set("kinds", rows_json(c.kinds))
      .set("streams", streams)
      .set("worst", rows_json(c.worst));
}

}  // namespace stratagem::report
