// The trace: JSON with a process per device class, a row per stream, arrows of messages, memory and
// links as counters.
#include "report/traces/trace.hpp"

#include <map>
#include <set>

#include "base/json_reader.hpp"
#include "report/group_links.hpp"
#include "sim/metrics.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

struct Traced {
  study::Simulated simulated;
  std::vector<report::LinkRates> links;
  std::vector<report::GroupLinks> groups;
  topology::Cluster cluster;
  std::vector<JsonReader> events;
};

Traced trace_of(const std::string& run_name, const std::vector<int>& devices = {}) {
  const TemporaryFolder folder;
  const std::string pipelined = R"(, {"name": "eight", "cluster": {"gpus": 8}, "strategy":
      {"tensor": 2, "pipeline": 2, "data": 2, "recompute": "full"}},
      {"name": "two servers", "cluster": {"gpus": 32}, "training": {"global_batch": 64},
       "strategy": {"tensor": 4, "data": 8}} ])";
  folder.write("a.json", with(small_scenario(), "\n  ]", pipelined));
  const study::Scenario scenario = study::read_scenario((folder.path() / "a.json").string());
  const auto run = std::ranges::find(scenario.runs, run_name, &study::Run::name);
  Traced traced{study::simulate(*run, {}), {}, {}, run->cluster, {}};
  const study::Simulated& simulated = traced.simulated;
  cost::Collectives collectives(run->cluster, run->profile.collective, run->stack.nccl);
  for (const sim::Actor& actor : simulated.timeline.actors)
    traced.links.push_back(
        report::link_rates(simulated.program, simulated.timeline, collectives, actor.device));
  traced.groups = report::group_links(simulated.program, collectives);
  const std::string text =
      report::chrome_trace(simulated.program, simulated.timeline, {.run = "a \"title\""},
                           {.links = traced.links, .devices = devices});
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

/// The slices of tasks, or that of the iteration.
std::vector<JsonReader> slices_of(const std::vector<JsonReader>& events, bool of_tasks = true) {
  std::vector<JsonReader> result = of_phase(events, "X");
  std::erase_if(result,
                [&](const JsonReader& event) { return event.at("args").has("task") != of_tasks; });
  return result;
}

/// Takes the new values of a counter.
void take_changes(const JsonReader& event, std::map<std::string, double>& values) {
  const JsonReader changed = event.at("args");
  for (const std::string& name : changed.keys()) values[name] = changed.at(name).number();
}

}  // namespace

TEST_CASE("a trace has a process per device class, named, and a row per stream") {
  const Traced traced = trace_of("eight");
  std::set<std::int64_t> processes;
  std::map<std::int64_t, std::vector<std::string>> rows;
  for (const JsonReader& event : of_phase(traced.events, "M")) {
    if (event.at("name").text() == "process_sort_index") continue;
    const std::string name = event.at("args").at("name").text();
    if (name == "run" || name == "iterations") continue;
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
  for (const JsonReader& event : slices_of(traced.events)) {
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

TEST_CASE("a trace has its iteration as a slice, as long as the iteration time") {
  const Traced traced = trace_of(GENERATE("four", "eight", "two servers"));
  const std::vector<JsonReader> iterations = slices_of(traced.events, false);
  REQUIRE(iterations.size() == 1);
  const double begin = iterations[0].at("ts").number();
  const double time = iterations[0].at("dur").number();
  CHECK(time == Approx(traced.simulated.outcome.metrics->iteration_time.value * 1e6).margin(1e-6));
  double first = begin, last = 0, longest = 0;
  for (const JsonReader& event : slices_of(traced.events)) {
    const double end = event.at("ts").number() + event.at("dur").number();
    first = std::min(first, event.at("ts").number());
    last = std::max(last, end);
    longest = std::max(longest, event.at("dur").number());
  }
  CHECK(first == 0);
  CHECK(last == Approx(begin + time).margin(1e-6));  // no iteration begins before this one ends
  CHECK(longest < time);
}

TEST_CASE("in a trace a message begins at one instant on both of its devices") {
  const Traced traced = trace_of("eight");
  std::map<std::string, std::vector<double>> sent, received;  // by what is sent
  for (const JsonReader& event : slices_of(traced.events)) {
    const std::string name = event.at("name").text();
    if (name.starts_with("send ")) sent[name.substr(5)].push_back(event.at("ts").number());
    if (name.starts_with("receive ")) received[name.substr(8)].push_back(event.at("ts").number());
  }
  CHECK(!sent.empty());
  CHECK(sent == received);
}

TEST_CASE("an arrow leads from each message's sender to its receiver") {
  const Traced traced = trace_of("eight");
  // The bar in which each end of an arrow lies, by place and begin.
  std::map<std::tuple<std::int64_t, std::int64_t, double>, std::string> bars;
  for (const JsonReader& event : slices_of(traced.events))
    bars[{event.at("pid").whole_number(), event.at("tid").whole_number(),
          event.at("ts").number()}] = event.at("name").text();
  const auto bar_of = [&](const JsonReader& event) {
    return bars.at(
        {event.at("pid").whole_number(), event.at("tid").whole_number(), event.at("ts").number()});
  };
  std::map<std::int64_t, std::string> sent;
  for (const JsonReader& event : of_phase(traced.events, "s"))
    CHECK(sent.emplace(event.at("id").whole_number(), bar_of(event)).second);
  std::size_t sends = 0;
  for (const auto& [place, name] : bars) sends += name.starts_with("send ") ? 1 : 0;
  CHECK(sends > 0);
  CHECK(sent.size() == sends);
  const std::vector<JsonReader> ends = of_phase(traced.events, "f");
  CHECK(ends.size() == sends);
  for (const JsonReader& event : ends) {
    CHECK(event.at("bp").text() == "e");
    CHECK("receive " + sent.at(event.at("id").whole_number()).substr(5) == bar_of(event));
  }
}

TEST_CASE("a trace of some devices has their processes alone, and names them") {
  const Traced all = trace_of("eight"), last = trace_of("eight", {7, 6});
  const sim::Timeline& timeline = all.simulated.timeline;
  REQUIRE(timeline.actor_of[6] == timeline.actor_of[7]);
  std::vector<std::string> names;
  for (const JsonReader& event : of_phase(last.events, "M")) {
    if (event.at("name").text() == "process_name")
      names.push_back(event.at("args").at("name").text());
  }
  CHECK(names == std::vector<std::string>{"devices 7, 6", "run"});
  std::size_t of_all = 0;
  for (const JsonReader& event : slices_of(all.events))
    of_all += event.at("pid").whole_number() == timeline.actor_of[7] ? 1 : 0;
  CHECK(slices_of(last.events).size() == of_all);
  CHECK(of_phase(last.events, "s").empty());  // whoever receives is not shown
}

namespace {

/// Is a vertex of a GPU's server that GPU, or of network links an adapter nearest to it?
bool is_end(const topology::Cluster& cluster, int gpu, const topology::Vertex& vertex,
            topology::LinkKind kind) {
  if (vertex.node != cluster.node_of(gpu)) return false;
  if (kind != topology::LinkKind::network)
    return vertex.kind == topology::VertexKind::gpu &&
           vertex.index == gpu % cluster.gpus_per_node();
  return vertex.kind == topology::VertexKind::nic &&
         std::ranges::count(cluster.nearest_nics(gpu), vertex.index) > 0;
}

/// Bytes of one iteration by link, as the groups of a program are counted.
std::map<std::string, double> bytes_of_groups(const Traced& traced, int gpu) {
  std::map<std::string, double> bytes;
  for (const report::GroupLinks& group : traced.groups) {
    for (const auto& [direction, on_it] : group.bytes) {
      const topology::Link& link = traced.cluster.links()[direction.link];
      const std::vector<topology::Vertex>& vertices = traced.cluster.vertices();
      const auto& from = vertices[direction.forward ? link.a : link.b];
      const auto& to = vertices[direction.forward ? link.b : link.a];
      if (is_end(traced.cluster, gpu, from, link.kind))
        bytes[topology::to_text(link.kind) + " out"] += on_it.value;
      if (is_end(traced.cluster, gpu, to, link.kind))
        bytes[topology::to_text(link.kind) + " in"] += on_it.value;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("over an iteration the rates of a GPU's links add up to what its groups put on them") {
  const std::string name = GENERATE("eight", "two servers");
  const Traced traced = trace_of(name);
  for (std::size_t a = 0; a < traced.links.size(); ++a) {
    const report::LinkRates& links = traced.links[a];
    std::map<std::string, double> bytes;
    for (std::size_t s = 1; s < links.steps.size(); ++s) {
      const Seconds span = to_seconds(links.steps[s].when - links.steps[s - 1].when);
      for (std::size_t l = 0; l < links.links.size(); ++l)
        bytes[links.links[l]] += (links.steps[s - 1].rates[l] * span).value;
    }
    for (const BytesPerSecond rate : links.steps.back().rates) CHECK(rate.value == 0);
    const std::map<std::string, double> expected =
        bytes_of_groups(traced, traced.simulated.timeline.actors[a].device);
    CHECK(bytes.size() == expected.size());
    CHECK(expected.contains("network out") == (name == "two servers"));
    for (const auto& [link, sum] : bytes) CHECK(sum == Approx(expected.at(link)));
  }
}

TEST_CASE("a counter of links has a rate in GB/s for each of them, and names what changes") {
  const Traced traced = trace_of("eight");
  std::map<std::int64_t, std::map<std::string, double>> rates;
  std::map<std::int64_t, std::size_t> steps;
  for (const JsonReader& event : of_phase(traced.events, "C")) {
    if (event.at("name").text() != "links") continue;
    const std::int64_t process = event.at("pid").whole_number();
    const report::LinkRates& links = traced.links[process];
    // Steps at which one collective follows another that is as fast are no events.
    std::size_t& at = steps[process];
    while (at > 0 && links.steps.at(at).rates == links.steps.at(at - 1).rates) ++at;
    const report::LinkRates::Step& step = links.steps.at(at++);
    for (const std::string& link : event.at("args").keys()) {
      const auto before = rates[process].find(link);
      CHECK(
          (before == rates[process].end() || before->second != event.at("args").at(link).number()));
    }
    CHECK(!event.at("args").keys().empty());
    take_changes(event, rates[process]);
    REQUIRE(rates[process].size() == links.links.size());
    for (std::size_t l = 0; l < links.links.size(); ++l)
      CHECK(rates[process].at(links.links[l]) == Approx(step.rates[l].value / 1e9));
  }
  for (std::size_t a = 0; a < traced.links.size(); ++a)
    CHECK(steps[static_cast<std::int64_t>(a)] == traced.links[a].steps.size());
}

TEST_CASE("a trace counts memory by category, and its highest sum is the peak of the metrics") {
  const Traced traced = trace_of("four");
  double highest = 0;
  std::map<std::string, double> live;
  std::size_t counters = 0;
  for (const JsonReader& event : of_phase(traced.events, "C")) {
    if (event.at("name").text() != "memory") continue;
    ++counters;
    take_changes(event, live);
    double sum = 0;
    for (const std::string_view category : program::category_names) {
      CHECK(live.at(std::string(category)) >= 0);
      sum += live.at(std::string(category));
    }
    CHECK(sum == live.at("all"));
    highest = std::max(highest, sum);
  }
  CHECK(counters > 0);
  CHECK(highest == traced.simulated.outcome.metrics->peak.total.value);
}
