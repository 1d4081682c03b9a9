// The trace: JSON with a process per device class, a row per stream, memory as a counter.
#include "report/trace.hpp"

#include <map>
#include <set>

#include "base/json_reader.hpp"
#include "sim/metrics.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

struct Traced {
  study::Simulated simulated;
  std::vector<JsonReader> events;
};

Traced trace_of(const std::string& run_name) {
  const TemporaryFolder folder;
  const std::string pipelined = R"(, {"name": "eight", "cluster": {"gpus": 8}, "strategy":
      {"tensor": 2, "pipeline": 2, "data": 2, "recompute": "full"}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", pipelined));
  const study::Scenario scenario = study::read_scenario((folder.path() / "a.json").string());
  const auto run = std::ranges::find(scenario.runs, run_name, &study::Run::name);
  Traced traced{study::simulate(*run, {}), {}};
  const std::string text = report::chrome_trace(traced.simulated.program, traced.simulated.timeline,
                                                {.run = "a \"title\""});
  const JsonReader trace = JsonReader::from_text(text, "trace.json");
  CHECK(trace.at("otherData").at("run").text() == "a \"title\"");
  traced.events = trace.at("traceEvents").elements();
  return traced;
}

std::vector<JsonReader> of_phase(const std::vector<JsonReader>& events, const std::string& phase) {
  std::vector<JsonReader> result;
  for (const JsonReader& event : events) {
    if (event.at("ph").text() == phase) result.push_back(event);
  }
  return result;
}

}  // namespace

TEST_CASE("a trace has a process per device class, named, and a row per stream") {
  const Traced traced = trace_of("eight");
  std::set<std::int64_t> processes;
  std::map<std::int64_t, std::vector<std::string>> rows;
  for (const JsonReader& event : of_phase(traced.events, "M")) {
    const std::string name = event.at("args").at("name").text();
    if (event.at("name").text() == "process_name") {
      CHECK(processes.insert(event.at("pid").whole_number()).second);
      CHECK_THAT(name, StartsWith("device "));
    } else {
      rows[event.at("pid").whole_number()].push_back(name);
    }
  }
  // Two stages of four GPUs each that do the same: two classes stand for eight devices.
  CHECK(processes.size() == traced.simulated.timeline.actors.size());
  CHECK(processes.size() < 8);
  const sim::Timeline& timeline = traced.simulated.timeline;
  for (const std::int64_t process : processes) {
    const std::vector<sim::Queue>& queues = timeline.queues[timeline.actors[process].sequence];
    REQUIRE(rows[process].size() == queues.size());
    for (std::size_t q = 0; q < queues.size(); ++q) {
      CHECK_THAT(rows[process][q],
                 StartsWith(std::string(
                     program::stream_names[static_cast<std::size_t>(queues[q].stream)])));
    }
  }
}

TEST_CASE("a trace has every task of an iteration, and those of one row do not overlap") {
  const Traced traced = trace_of("eight");
  struct Slice {
    double begin, end;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Slice>> rows;
  std::map<std::int64_t, std::size_t> slices;
  for (const JsonReader& event : of_phase(traced.events, "X")) {
    const std::int64_t process = event.at("pid").whole_number();
    const double begin = event.at("ts").number();
    rows[{process, event.at("tid").whole_number()}].push_back(
        {begin, begin + event.at("dur").number()});
    ++slices[process];
    CHECK(event.at("dur").number() >= 0);
    CHECK(event.at("args").has("cell"));
  }
  const sim::Timeline& timeline = traced.simulated.timeline;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    CHECK(slices[static_cast<std::int64_t>(a)] ==
          timeline.tasks[timeline.actors[a].sequence].size());
  }
  for (auto& [row, list] : rows) {
    std::ranges::sort(list, {}, &Slice::begin);
    for (std::size_t i = 1; i < list.size(); ++i)
      CHECK(list[i - 1].end <= list[i].begin + 1e-6);  // a picosecond
  }
}

TEST_CASE("in a trace a message begins at one instant on both of its devices") {
  const Traced traced = trace_of("eight");
  std::map<std::string, std::vector<double>> sent, received;  // by what is sent
  for (const JsonReader& event : of_phase(traced.events, "X")) {
    const std::string name = event.at("name").text();
    if (name.starts_with("send ")) sent[name.substr(5)].push_back(event.at("ts").number());
    if (name.starts_with("receive ")) received[name.substr(8)].push_back(event.at("ts").number());
  }
  CHECK(!sent.empty());
  CHECK(sent == received);
}

TEST_CASE("a trace counts memory by category, and its highest sum is the peak of the metrics") {
  const Traced traced = trace_of("four");
  double highest = 0;
  const std::vector<JsonReader> counters = of_phase(traced.events, "C");
  REQUIRE(!counters.empty());
  for (const JsonReader& event : counters) {
    CHECK(event.at("name").text() == "memory");
    double sum = 0;
    for (const std::string_view category : program::category_names) {
      const double bytes = event.at("args").at(category).number();
      CHECK(bytes >= 0);
      sum += bytes;
    }
    highest = std::max(highest, sum);
  }
  CHECK(highest == traced.simulated.outcome.metrics->peak.total.value);
}
