// Sends and receives of traces: both ends of a message are of one micro-batch and begin together.
#include "report/traces/messages.hpp"

#include "report/traces/measured_round.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

study::Simulated simulated(const std::string& strategy) {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), "\n  ]",
                              R"(, {"name": "piped", "cluster": {"gpus": 4},
                                   "model": {"layers": 8},
                                   "training": {"global_batch": 16}, "strategy": )" +
                                  strategy + "} ]"));
  const study::Scenario scenario = study::read_scenario((folder.path() / "a.json").string());
  return study::simulate(*std::ranges::find(scenario.runs, "piped", &study::Run::name), {});
}

struct End {
  sim::Instant begin;
  int micro_batch = 0;
};

End end_of(const study::Simulated& of, const report::ActorTask& task) {
  const sim::Timeline& timeline = of.timeline;
  const int sequence = timeline.actors[task.actor].sequence;
  const sim::FlatTask flat = timeline.tasks[sequence][task.task];
  const std::size_t round = report::measured_round(timeline);
  return {.begin = timeline.times[task.actor].begins[round][task.task],
          .micro_batch = of.program.sequences[sequence].calls[flat.call].cell.micro_batch};
}

}  // namespace

TEST_CASE("both ends of a message begin at one instant, and are of one micro-batch") {
  // Stages are sent to forward and back, once for each of eight micro-batches; chunks and
  // pipelines in both directions have two pieces on a device.
  const auto [strategy, crossings] = GENERATE(table<std::string, std::size_t>({
      {R"({"pipeline": 4, "schedule": "1f1b"})", 2 * 3},
      {R"({"pipeline": 4, "schedule": "gpipe"})", 2 * 3},
      {R"({"pipeline": 4, "schedule": "interleaved", "chunks": 2})", 2 * 7},
      {R"({"pipeline": 4, "schedule": "dualpipe"})", 2 * 3},
      {R"({"pipeline": 4, "schedule": "zb-h1"})", 2 * 3},
  }));
  CAPTURE(strategy);
  const study::Simulated of = simulated(strategy);
  const std::vector<report::Message> messages = report::messages(of.program, of.timeline);
  CHECK(messages.size() == 8 * crossings);
  for (const report::Message& message : messages) {
    const End sent = end_of(of, message.sent), received = end_of(of, message.received);
    CHECK(sent.begin == received.begin);
    CHECK(sent.micro_batch == received.micro_batch);
  }
}

TEST_CASE("where iterations overlap, messages that a round receives from another are left out") {
  const study::Simulated of = simulated(R"({"pipeline": 4, "schedule": "pipedream-2bw"})");
  REQUIRE(of.program.lag > 0);
  const std::vector<report::Message> messages = report::messages(of.program, of.timeline);
  CHECK(!messages.empty());
  CHECK(messages.size() < 8 * 2 * 3);
  for (const report::Message& message : messages)
    CHECK(end_of(of, message.sent).begin == end_of(of, message.received).begin);
}
