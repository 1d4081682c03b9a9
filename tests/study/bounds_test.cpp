// Bounds against simulations, and against what is known of schedules in closed form.
#include "study/bounds.hpp"

#include "base/json_copy.hpp"
#include "sim/busiest_link.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
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

/// What a run takes at least once its program is known, by queues, then by links; and its outcome.
std::pair<Seconds, Outcome> least_by_program(const Run& run) {
  Seconds least;
  while (true) {
    const Simulated result = simulate(run, {.no_longer_than = least});
    if (result.outcome.status != Outcome::Status::not_asked) return {least, result.outcome};
    REQUIRE(result.at_least > least);
    least = result.at_least;
  }
}

Seconds link_of(const Run& run, const program::Program& program, bool folded) {
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  return sim::busiest_link(program, sim::fold(program, collectives, folded));
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
    const auto [by_program, outcome] = least_by_program(run);
    CHECK((least.iteration_time > Seconds{} || !plan_of(run).updates.flush));
    CHECK((by_program > Seconds{} || !plan_of(run).updates.flush));
    CHECK(by_program <= outcome.metrics->iteration_time);
    CHECK(least.iteration_time <= outcome.metrics->iteration_time);
    CHECK(least.memory <= outcome.memory.used);
    const program::Program program = program_of(run, plan_of(run));
    const sim::Prices prices =
        sim::price(program, run.profile, run.stack, run.cluster.gpus_per_node());
    const Seconds queue = busiest_queue(run, program, prices), link = link_of(run, program, true);
    CHECK(std::max(queue, link) <= outcome.metrics->iteration_time);
    CHECK(close(link, link_of(run, program, false), 1e-9));
    CHECK(by_program >= std::max(queue, link));
  }
}

TEST_CASE("links that groups share bound an iteration more closely than the queues of each") {
  // Sixteen groups of two data ranks use the eight adapters of two DGX-2s.
  const TemporaryFolder folder;
  folder.write("case.json", small_scenario());
  const JsonReader settings = JsonReader::from_text(
      R"({"model": {"family": "gpt", "layers": 2, "hidden": 16384, "heads": 16, "sequence": 32,)"
      R"( "vocabulary": 128}, "cluster": {"preset": "dgx-2", "gpus": 32},)"
      R"( "strategy": {"tensor": 16, "data": 2},)"
      R"( "training": {"micro_batch": 1, "global_batch": 2}})",
      "case");
  const JsonReader defaults = JsonReader::from_file((folder.path() / "case.json").string());
  Run run = run_over(defaults.at("defaults"), copy_of(settings), "case");
  run.profile.launch.value = Seconds{1e-8};
  const program::Program program = program_of(run, plan_of(run));
  const sim::Prices prices =
      sim::price(program, run.profile, run.stack, run.cluster.gpus_per_node());
  const Seconds link = link_of(run, program, true);
  CHECK(link > 1.5 * busiest_queue(run, program, prices));
  const auto [by_program, outcome] = least_by_program(run);
  CHECK(by_program == link);
  CHECK(link <= outcome.metrics->iteration_time);
  CHECK(1.5 * link > outcome.metrics->iteration_time);
}

TEST_CASE("bounds hold where hosts cost next to nothing, so that little is added to them") {
  struct Case {
    std::string model, strategy;
    int samples;
  };
  const std::string deep =
      R"({"family": "gpt", "layers": 16, "hidden": 1024, "heads": 8, "sequence": 512,)"
      R"( "vocabulary": 128})";
  const std::string t5 =
      R"({"family": "t5", "layers": 4, "decoder_layers": 4, "hidden": 512, "heads": 8,)"
      R"( "intermediate": 2048, "sequence": 1024, "decoder_sequence": 256, "vocabulary": 512})";
  const std::vector<Case> cases = {
      // What runs again does so while the gradient is on its way.
      {deep, R"({"pipeline": 16, "recompute": "full"})", 1},
      {deep, R"({"pipeline": 8, "recompute": "full"})", 8},
      {deep, R"({"pipeline": 4, "tensor": 2, "recompute": "selective"})", 4},
      // Cells that run together hide each other's collectives.
      {deep, R"({"pipeline": 4, "tensor": 4, "schedule": "dualpipe"})", 16},
      {deep, R"({"pipeline": 4, "tensor": 4, "schedule": "dualpipe-v"})", 16},
      // Iterations that overlap end when the last of them drains.
      {deep, R"({"pipeline": 4, "schedule": "pipedream", "layers_per_stage": [13, 1, 1, 1]})", 4},
      {deep, R"({"pipeline": 4, "schedule": "zb-h1"})", 8},
      {deep, R"({"pipeline": 4, "schedule": "interleaved"})", 8},
      // A decoder begins without what the encoder computes.
      {t5, R"({"pipeline": 2})", 4},
      {t5, R"({"pipeline": 4})", 4}};
  static const TemporaryFolder folder;
  for (const Case& each : cases) {
    INFO(each.strategy << " on " << each.model);
    folder.write("case.json", small_scenario());
    const JsonReader strategy = JsonReader::from_text(each.strategy, "case");
    const auto ranks = [&](const char* key) {
      return strategy.has(key) ? static_cast<int>(strategy.at(key).whole_number()) : 1;
    };
    const JsonReader settings = JsonReader::from_text(
        R"({"model": )" + each.model + R"(, "cluster": {"preset": "dgx-2", "gpus": )" +
            std::to_string(ranks("pipeline") * ranks("tensor")) + R"(}, "strategy": )" +
            each.strategy + R"(, "training": {"micro_batch": 1, "global_batch": )" +
            std::to_string(each.samples) + "}}",
        "case");
    const JsonReader defaults = JsonReader::from_file((folder.path() / "case.json").string());
    Run run = run_over(defaults.at("defaults"), copy_of(settings), "case");
    INFO((run.refused ? run.refused->what() : ""));
    REQUIRE(!run.refused);
    for (const double launch : {1e-8, 5e-6}) {
      run.profile.launch.value = Seconds{launch};
      const Bounds least = bounds(run);
      const auto [by_program, outcome] = least_by_program(run);
      CHECK(least.iteration_time <= outcome.metrics->iteration_time);
      CHECK(by_program <= outcome.metrics->iteration_time);
      CHECK(least.memory <= outcome.memory.used);
    }
  }
}

TEST_CASE("every further micro-batch adds what the slowest stage computes of it") {
  const Seconds at_8 = time_with(pipeline("1f1b"), 8), at_12 = time_with(pipeline("1f1b"), 12),
                at_20 = time_with(pipeline("1f1b"), 20);
  CHECK(close(at_20 - at_12, 2 * (at_12 - at_8), 1e-9));
}

TEST_CASE(
    "GPipe and 1F1B have the same bubble, and chunks and a split backward pass make it smaller") {
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

TEST_CASE("bounds hold where backward cells are split, whatever the weight cells wait for") {
  int checked = 0;
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-v", "v-min"}) {
    for (const char* recompute :
         {R"("none")", R"("selective")", R"("full")", R"({"operators": ["mlp.gelu", "mlp.fc2"]})",
          R"({"operators": ["attention.*"]})"}) {
      for (const char* rest :
           {R"("pipeline": 4)", R"("pipeline": 2, "tensor": 2)",
            R"("pipeline": 2, "data": 2, "zero": 2)", R"("pipeline": 2, "data": 2, "zero": 3)"}) {
        const std::string strategy = std::string(R"({"schedule": ")") + schedule +
                                     R"(", "recompute": )" + recompute + ", " + rest + "}";
        CAPTURE(strategy);
        const Run run = run_with(strategy, 16);
        const Outcome outcome = simulate_or_refuse(run, {}).outcome;
        if (outcome.status == Outcome::Status::refused) continue;
        const Bounds least = bounds(run);
        CHECK(least.memory <= outcome.memory.used);
        CHECK(least.iteration_time <= outcome.metrics->iteration_time);
        ++checked;
      }
    }
  }
  CHECK(checked > 30);
}

TEST_CASE("what weight cells wait for counts in the least memory") {
  const Run run = run_with(pipeline("zb-h2"), 16);
  const Outcome outcome = simulate(run, {}).outcome;
  const Bytes beside = outcome.memory.used - outcome.memory.allocated;
  CHECK(bounds(run).memory + beside > 0.95 * outcome.memory.used);
}

}  // namespace stratagem::study
