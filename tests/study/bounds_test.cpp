// Bounds against simulations, and against what is known of schedules in closed form.
#include "study/bounds.hpp"

#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

/// A GPT whose layers outweigh its ends, on 4 GPUs of a DGX-2.
Run run_with(const std::string& strategy, int samples = 8) {
  static const TemporaryFolder folder;
  std::string text =
      with(small_scenario(), R"("layers": 2, "hidden": 64)", R"("layers": 8, "hidden": 256)");
  text = with(text, R"("global_batch": 8, "micro_batch": 2)",
              R"("global_batch": )" + std::to_string(samples) + R"(, "micro_batch": 1)");
  text = with(text, R"({"tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB"})",
              strategy);
  folder.write("scenario.json", text);
  return read_scenario((folder.path() / "scenario.json").string()).runs.at(1);
}

Seconds time_with(const std::string& strategy, int samples = 8) {
  return bounds(run_with(strategy, samples)).iteration_time;
}

std::string pipeline(const std::string& schedule, const std::string& more = "") {
  return R"({"pipeline": 4, "schedule": ")" + schedule + "\"" + more + "}";
}

}  // namespace

TEST_CASE("a simulation takes at least its bounds, under every kind of plan") {
  for (const std::string& strategy :
       {pipeline("gpipe"),
        pipeline("1f1b"),
        pipeline("interleaved"),
        pipeline("zb-h1"),
        pipeline("zb-v"),
        pipeline("dualpipe"),
        pipeline("chimera"),
        pipeline("hanayo"),
        pipeline("pipedream"),
        pipeline("pipedream-2bw"),
        pipeline("1f1b", R"(, "recompute": "full")"),
        pipeline("1f1b", R"(, "swap": 2)"),
        pipeline("bpipe"),
        std::string(R"({"tensor": 4, "sequence_parallel": true, "recompute": "selective"})"),
        std::string(R"({"data": 4, "zero": 1})"),
        std::string(R"({"data": 4, "zero": 3})"),
        std::string(R"({"tensor": 2, "data": 2, "zero": 2, "offload": "optimizer"})"),
        std::string(R"({"context": 2, "pipeline": 2})"),
        std::string(R"({"pipeline": 4, "layers_per_stage": [1, 3, 3, 1]})"),
        std::string(R"({"pipeline": 2, "replicas_per_stage": [1, 3], "schedule": "pipedream"})")}) {
    INFO(strategy);
    const Run run = run_with(strategy, 24);
    INFO((run.refused ? run.refused->what() : ""));
    REQUIRE(!run.refused);
    const Bounds least = bounds(run);
    const Outcome outcome = simulate(run, {}).outcome;
    CHECK(least.iteration_time > Seconds{});
    CHECK(least.iteration_time <= outcome.metrics->iteration_time);
    CHECK(least.memory <= outcome.memory.used);
  }
}

TEST_CASE("every further micro-batch adds what the slowest stage computes of it") {
  const Seconds at_8 = time_with(pipeline("1f1b"), 8), at_12 = time_with(pipeline("1f1b"), 12),
                at_20 = time_with(pipeline("1f1b"), 20);
  CHECK(close(at_20 - at_12, 2 * (at_12 - at_8), 1e-9));
}

TEST_CASE("GPipe and 1F1B have the same bubble; chunks and a split backward pass make it smaller") {
  const Seconds gpipe = time_with(pipeline("gpipe")), one_f = time_with(pipeline("1f1b"));
  CHECK(close(one_f, gpipe, 0.02));  // the ends are not equal
  CHECK(time_with(pipeline("interleaved")) < one_f);
  CHECK(time_with(pipeline("zb-h1")) < one_f);
}

TEST_CASE("GPipe holds every further micro-batch, 1F1B none") {
  const auto memory = [](const std::string& schedule, int samples) {
    return bounds(run_with(pipeline(schedule), samples)).memory;
  };
  CHECK(memory("1f1b", 24) == memory("1f1b", 12));
  const Bytes more = memory("gpipe", 16) - memory("gpipe", 12);
  CHECK(more > Bytes{});
  CHECK(close(memory("gpipe", 24) - memory("gpipe", 12), 3 * more, 1e-9));
}

}  // namespace stratagem::study
