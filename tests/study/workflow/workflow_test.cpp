// Phases of RLHF against hand formulas, and against the same passes simulated one by one.
#include <algorithm>
#include <cmath>
#include <string>

#include "study/scenario.hpp"
#include "study/workflow/outcome.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

constexpr double layers = 2, hidden = 256, groups = 2, width = 64, inner = 512, words = 1024;
constexpr int sequence = 64, samples = 8;

/// Parameters of a Llama without its head: table, layers of QKV, projection, gate, up and down,
/// norms.
constexpr double body = words * hidden +
                        layers * (hidden * (hidden + 2 * groups * width) + hidden * hidden +
                                  3 * hidden * inner + 2 * hidden) +
                        hidden;
constexpr double with_words = body + words * hidden;
constexpr double with_number = body + hidden;

/// Runs of small Llamas on one server of H100s: `strategy` is of all, `stack` a shipped one.
std::string scenario(const std::string& phases, const std::string& strategy = "{}",
                     const std::string& stack = "megatron-core-te") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({"question": "PPO?", "defaults": {"profile": ")" + shipped +
         R"(/profiles/h100-sxm5.json", "stack": ")" + shipped + "/stacks/" + stack +
         R"(.json", "cluster": {"preset": "dgx-h100", "gpus": 2},
  "model": {"family": "llama", "layers": 2, "hidden": 256, "heads": 4, "kv_heads": 2,
            "intermediate": 512, "vocabulary": 1024, "sequence": 64},
  "training": {"global_batch": 8, "micro_batch": 2, "precision": "bf16", "optimizer": "none"},
  "strategy": )" +
         strategy + R"(}, "runs": [
  {"name": "words"}, {"name": "scores", "model": {"head": "reward"}},
  {"name": "values", "model": {"head": "values"}},
  {"name": "actor", "training": {"optimizer": "adam"}},
  {"name": "critic", "model": {"head": "values"}, "training": {"optimizer": "adam"}},
  {"name": "halves", "strategy": {"tensor": 2, "data": 1}},
  {"name": "copies", "strategy": {"tensor": 1, "data": 2}},
  {"name": "actor in halves", "strategy": {"tensor": 2, "data": 1},
   "training": {"optimizer": "adam"}},
  {"name": "stages", "strategy": {"pipeline": 2, "tensor": 1, "data": 1}},
  {"name": "another GPU", "profile": ")" +
         shipped + R"(/profiles/h200-sxm5.json"},
  {"name": "one GPU", "cluster": {"gpus": 1}, "strategy": {"tensor": 1, "data": 1},
   "what_if": {"launches": 1000}}],
  "workflows": [{"name": "w", "phases": [)" +
         phases + "]}]}";
}

Scenario read(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("s.json", text);
  return read_scenario((folder.path() / "s.json").string());
}

WorkflowOutcome outcome_of(const std::string& text) {
  const Scenario scenario = read(text);
  return simulate_workflow(read_workflows(scenario).at(0), {});
}

std::string refusal_of(const std::string& text) {
  try {
    return outcome_of(text).refused.value_or("");
  } catch (const InputError& error) {
    return error.what();
  }
}

/// The makespan of a run with other keys of its model.
double makespan(const std::string& text, const std::string& run, const Json& model) {
  const Scenario all = read(text);
  const Run& of = *std::ranges::find(all.runs, run, &Run::name);
  return simulate(with_settings(of, Json::object().set("model", model)), {})
      .outcome.metrics->makespan.value;
}

const std::string all_four =
    R"({"run": "words", "name": "answers", "weights": "actor", "answer_tokens": 32},
       {"run": "words", "weights": "reference"}, {"run": "scores"},
       {"run": "values", "weights": "critic"}, {"run": "actor", "repeat": 3},
       {"run": "critic", "repeat": 3})";

}  // namespace

// 16 bytes of a trained parameter with Adam (weights, gradients, master copy, two states), 2 of the
// others; caches of 2 * layers * groups * width numbers of each token of each sample.
TEST_CASE("the four models of PPO keep 16 and 2 bytes of each parameter, and their caches") {
  struct Case {
    std::string strategy;
    double parts;  ///< of the parameters
    double ranks;  ///< that share samples or groups
  };
  for (const auto& [strategy, parts, ranks] :
       {Case{R"({"tensor": 2})", 2, 2}, Case{R"({"data": 2})", 1, 2}}) {
    INFO(strategy);
    const WorkflowOutcome outcome = outcome_of(scenario(all_four, strategy));
    REQUIRE(!outcome.refused);
    const PoolMemory& pool = outcome.pools.at(0);
    const auto of = [&](const std::string& model) { return pool.states.at(model).value * parts; };
    // Norms and the column of a number lie whole on every tensor rank.
    const double whole = parts == 1 ? 0 : (2 * layers + 1) * hidden;
    const double column = parts == 1 ? 0 : hidden;
    CHECK(of("actor") == 16 * (with_words + whole));
    CHECK(of("critic") == 16 * (with_number + whole + column));
    CHECK(of("reference") == 2 * (with_words + whole));
    CHECK(of("scores") == 2 * (with_number + whole + column));
    const double caches = 2 * layers * groups * width * sequence * samples * 2 / ranks;
    const std::string alone = R"({"run": "words", "weights": "actor", "answer_tokens": 32})";
    const PoolMemory answers = outcome_of(scenario(alone, strategy)).pools.at(0);
    CHECK(answers.caches.value == caches);
    CHECK(answers.other > Bytes{});
    CHECK(answers.used().value * 1 ==
          answers.other.value + caches + 2 * (with_words + whole) / parts);
    CHECK(outcome.phases[0].used.value ==
          answers.other.value + caches +
              (16 * (with_words + with_number + 2 * whole + column) +
               2 * (with_words + with_number + 2 * whole + column)) /
                  parts);
  }
}

TEST_CASE("an answer takes its prompt's pass and one pass for each later token") {
  const std::vector<std::string> stacks = {"plain", "megatron-core-te"};
  for (const std::string strategy :
       {R"({"data": 2})", R"({"tensor": 2})", R"({"data": 2, "zero": 3})"}) {
    for (std::size_t i = 0; i < stacks.size(); i += stride(2)) {
      const std::string& stack = stacks[i];
      INFO(strategy << " " << stack);
      const std::string text = scenario(all_four, strategy, stack);
      const Scenario all = read(text);
      const auto pass = [&](int tokens, int cached) {
        const Json cache = Json::object().set("room", sequence).set("tokens", cached);
        return makespan(text, "words", Json::object().set("sequence", tokens).set("cache", cache));
      };
      double sum = pass(sequence - 32, 0);
      for (int cached = sequence - 32; cached < sequence - 1; ++cached) sum += pass(1, cached);
      const Generation answer = generate(all.runs[0], 32, {});
      // Each pass that is left out may be a picosecond off for each task.
      CHECK(std::abs(answer.time.value - sum) < 31 * 100 * 1e-12);
      CHECK(answer.simulated < 31);
    }
  }
}

TEST_CASE("short answers, and answers that are repeated") {
  const auto answer = [](int tokens, int repeat) {
    const std::string phase = R"({"run": "words", "answer_tokens": )" + std::to_string(tokens) +
                              R"(, "repeat": )" + std::to_string(repeat) + "}";
    return outcome_of(scenario(phase, R"({"data": 2})")).phases.at(0);
  };
  const PhaseOutcome one = answer(1, 1), two = answer(2, 1), twice = answer(2, 2);
  CHECK(one.time == one.generation->prefill);
  CHECK(one.generation->simulated == 0);
  CHECK(two.time == two.generation->prefill + two.generation->first);
  CHECK(two.generation->first == two.generation->last);
  CHECK(two.generation->simulated == 1);
  CHECK(twice.time == 2 * two.time);
}

// Per token: all weights but the table of words, whose rows are picked, and the caches' rows.
// Launches keep no kernel waiting there; the kernels' own begins and ends take the rest, and what
// products reach of the bandwidth.
TEST_CASE("a token takes at least what weights and caches take to be read, and not much more") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const std::string large = R"({"preset": "llama-3-8b", "sequence": 2048})";
  std::string text = scenario(R"({"run": "one GPU", "answer_tokens": 1024})");
  const std::string small = text.substr(text.find(R"("model": {"family")"));
  const std::string model = small.substr(0, small.find('}') + 1);
  text = with(text, model, R"("model": )" + large);
  text = with(text, "megatron-core-te", "plain");
  const Scenario all = read(text);
  const Run& run = all.runs.back();
  const Generation answer = generate(run, 1024, {});
  const double parameters = 8'030'261'248.0 - 128'256.0 * 4096;
  const double bandwidth = run.profile.memory.bandwidth.value.value;
  // Two samples of the micro-batch share what is read of the weights: four micro-batches read them.
  const auto least = [&](double tokens) {
    return (4 * 2 * parameters + 8 * 2 * 32 * 1024 * tokens * 2) / bandwidth;
  };
  CHECK(answer.first.value > least(1025));
  CHECK(answer.first.value < 1.5 * least(1025));
  CHECK(answer.last.value > least(2047));
  CHECK(answer.last.value < 1.5 * least(2047));
  CHECK(answer.memory_bound.value > 1023 * least(1536));
  CHECK(answer.time > answer.memory_bound);
}

TEST_CASE("phases of one pool follow each other, and those of two pools run side by side") {
  const std::string in_turn =
      R"({"run": "words"}, [{"run": "actor", "repeat": 3}, {"run": "critic", "repeat": 2}])";
  const std::string side_by_side =
      R"({"run": "words", "pool": "a"}, [{"run": "actor", "repeat": 3, "pool": "a"},
         {"run": "critic", "repeat": 2, "pool": "b"}], {"run": "values", "pool": "b"})";
  const WorkflowOutcome one = outcome_of(scenario(in_turn, R"({"tensor": 2})"));
  const WorkflowOutcome two = outcome_of(scenario(side_by_side, R"({"tensor": 2})"));
  CHECK(one.gpus == 2);
  CHECK(two.gpus == 4);
  const auto time = [](const WorkflowOutcome& of, std::size_t i) { return of.phases[i].time; };
  CHECK(close(one.time, time(one, 0) + time(one, 1) + time(one, 2), 1e-12));
  CHECK(one.phases[2].begin.value > one.phases[1].begin.value);
  CHECK(two.phases[1].begin == two.phases[2].begin);
  CHECK(two.phases[3].begin == two.phases[1].begin + std::max(time(two, 1), time(two, 2)));
  CHECK(two.time == two.phases[3].begin + two.phases[3].time);
  const Scenario all = read(scenario(in_turn, R"({"tensor": 2})"));
  const Simulated actor = simulate(all.runs[3], {});
  const sim::Metrics& metrics = *actor.outcome.metrics;
  CHECK(time(one, 1) == metrics.makespan + 2 * metrics.iteration_time);
}

TEST_CASE("a pool needs what its models keep and the largest phase's own") {
  const WorkflowOutcome one = outcome_of(
      scenario(R"({"run": "actor"}, {"run": "values"}, {"run": "critic"})", R"({"data": 2})"));
  const Scenario all = read(scenario("{\"run\": \"actor\"}", R"({"data": 2})"));
  const PoolMemory& pool = one.pools.at(0);
  const Simulated alone = simulate(all.runs[pool.phase == "actor" ? 3 : 4], {});
  const double kept = pool.phase == "actor" ? 16 * with_words : 16 * with_number;
  const double others = 16 * (with_words + with_number) + 2 * with_number - kept;
  CHECK(pool.used().value == alone.outcome.memory.used.value + others);
  CHECK(one.fits());
}

/// The time until new weights are there, of one phase of a workflow of larger Llamas.
double weights_of(const std::string& phases, std::size_t phase, int hidden_size) {
  std::string text = scenario(phases, R"({"data": 2})");
  text = with(text, R"("hidden": 256)", R"("hidden": )" + std::to_string(hidden_size));
  const WorkflowOutcome outcome = outcome_of(text);
  REQUIRE(!outcome.refused);
  CHECK(outcome.phases[phase].weight_transfer < outcome.phases[phase].time);
  return outcome.phases[phase].weight_transfer.value;
}

/// Parameters of such a Llama that tensor ranks divide.
double divided(double h) {
  return 2 * words * h + layers * (h * (h + 2 * groups * h / 4) + h * h + 3 * h * inner);
}

// What is fixed does not matter between two sizes.
TEST_CASE("new weights take their bytes over links: within a server those that a GPU lacks") {
  const auto per_byte = [](const std::string& phases, double share) {
    const double bytes = 2 * share * (divided(4096) - divided(2048));
    return (weights_of(phases, 1, 4096) - weights_of(phases, 1, 2048)) / bytes;
  };
  // Both GPUs fetch the half that they lack, over 18 NVLinks of 25 GB/s at once.
  const double nvlink = 1 / 450e9;
  const std::string wider = R"({"run": "actor in halves", "weights": "a"},
                               {"run": "copies", "weights": "a"})";
  CHECK(per_byte(wider, 0.5) > nvlink);
  CHECK(per_byte(wider, 0.5) < 1.6 * nvlink);
  // All of it to each of two GPUs of another server, each through an adapter of its own.
  const double adapter = 1 / 50e9;
  const std::string away = R"({"run": "actor", "weights": "a"},
                              {"run": "copies", "weights": "a", "pool": "b"})";
  CHECK(per_byte(away, 1) > adapter);
  CHECK(per_byte(away, 1) < 1.6 * adapter);
}

TEST_CASE("no GPU fetches what it has, and a pool that trains nothing gets new weights once") {
  const std::string narrower = R"({"run": "actor", "weights": "a"},
                                  {"run": "halves", "weights": "a"})";
  CHECK(weights_of(narrower, 1, 2048) == 0);
  const std::string twice = R"({"run": "actor", "weights": "a"},
      {"run": "copies", "weights": "a", "pool": "b"},
      {"run": "copies", "weights": "a", "pool": "b", "name": "again"})";
  CHECK(weights_of(twice, 1, 2048) > 0);
  CHECK(weights_of(twice, 2, 2048) == 0);
  CHECK(weights_of(twice, 0, 2048) == 0);
}

TEST_CASE("shards come from all ranks that have one") {
  const std::string phases = R"({"run": "actor", "weights": "a"},
                                {"run": "copies", "weights": "a", "name": "b"})";
  const Scenario all = read(with(scenario(phases, R"({"data": 2})"), R"({"name": "actor", )",
                                 R"({"name": "actor", "strategy": {"zero": 3}, )"));
  const WorkflowOutcome outcome = simulate_workflow(read_workflows(all).at(0), {});
  REQUIRE(!outcome.refused);
  CHECK(outcome.phases[1].weight_transfer.value > with_words / 450e9);
}

TEST_CASE("a copy in another division counts in its phase alone") {
  const std::string phases = R"({"run": "actor in halves", "weights": "a"},
                                {"run": "copies", "weights": "a"})";
  const Scenario all = read(scenario(phases, R"({"data": 2})"));
  const PoolMemory pool = simulate_workflow(read_workflows(all).at(0), {}).pools.at(0);
  const double whole = (2 * layers + 1) * hidden;
  CHECK(pool.states.size() == 1);
  CHECK(pool.states.at("a").value * 2 == 16 * (with_words + whole));
  const Run& copies = *std::ranges::find(all.runs, "copies", &Run::name);
  const Bytes alone = simulate(copies, {}).outcome.memory.used;
  const Run& actor = *std::ranges::find(all.runs, "actor in halves", &Run::name);
  const Bytes trained = simulate(actor, {}).outcome.memory.used;
  CHECK(pool.used() == std::max(alone + pool.states.at("a"), trained));
  CHECK(pool.copy.value == (pool.phase == "copies" ? 2 * with_words : 0));
}

TEST_CASE("models that are too many for a pool do not fit, though each does") {
  std::string text = scenario(R"({"run": "actor"}, {"run": "critic"})", R"({"data": 2})");
  text = with(text, R"("hidden": 256)", R"("hidden": 8192)");
  text = with(text, R"("vocabulary": 1024)", R"("vocabulary": 204800)");
  const Scenario all = read(text);
  const WorkflowOutcome outcome = simulate_workflow(read_workflows(all).at(0), {});
  REQUIRE(!outcome.refused);
  for (const Run& run : all.runs) {
    if (run.name == "actor" || run.name == "critic")
      CHECK(simulate(run, {}).outcome.status == Outcome::Status::ok);
  }
  CHECK(!outcome.fits());
}

TEST_CASE("what a workflow cannot have is refused where it stands") {
  const auto refused = [](const std::string& phases) {
    return refusal_of(scenario(phases, R"({"data": 2})"));
  };
  CHECK_THAT(refused(R"({"run": "word"})"), ContainsSubstring("/workflows/0/phases/0/run") &&
                                                ContainsSubstring("did you mean \"words\""));
  CHECK_THAT(refused(R"({"run": "words"}, {"run": "words"})"), ContainsSubstring("a \"name\""));
  CHECK_THAT(refused(R"({"run": "words", "answer_tokens": 64})"), ContainsSubstring("63"));
  CHECK_THAT(refused(R"({"run": "stages", "answer_tokens": 2})"),
             ContainsSubstring("a run without stages"));
  CHECK_THAT(refused(R"({"run": "actor", "answer_tokens": 2})"),
             ContainsSubstring("expected a run with \"optimizer\": \"none\", found adam"));
  CHECK_THAT(refused(R"({"run": "scores", "answer_tokens": 2})"),
             ContainsSubstring("/workflows/0/phases/0/answer_tokens: expected a run whose passes"));
  CHECK_THAT(refused(R"({"run": "words", "pool": ""})"), ContainsSubstring("a name"));
  CHECK_THAT(refused(R"({"run": "words", "weights": "a"}, {"run": "values", "weights": "a"})"),
             ContainsSubstring("has another model"));
  CHECK_THAT(refused(R"({"run": "words"}, {"run": "another GPU"})"),
             ContainsSubstring("a run on profile h100-sxm5, as phase \"words\""));
  CHECK_THAT(refused(R"({"run": "words"}, {"run": "one GPU"})"),
             ContainsSubstring("a run on 2 GPUs, as phase \"words\" of pool \"all\""));
  CHECK_THAT(refused(R"({"run": "copies", "weights": "a"}, {"run": "halves", "weights": "a"})"),
             ContainsSubstring("phase \"copies\" divides them differently"));
  CHECK_THAT(refused(R"({"run": "copies", "weights": "a"}, {"run": "stages", "weights": "a"})"),
             ContainsSubstring("phase \"copies\" divides them differently"));
  CHECK_THAT(refused(R"({"run": "stages", "weights": "a"}, {"run": "copies", "weights": "a"})"),
             ContainsSubstring("phase \"stages\" divides them differently"));
  CHECK_THAT(
      refused(R"({"run": "actor", "weights": "a"}, {"run": "actor in halves", "weights": "a"})"),
      ContainsSubstring("phase \"actor\" divides them differently"));
  CHECK_THAT(refused(R"({"run": "actor", "weights": "a"},
                        {"run": "actor", "weights": "a", "name": "b", "pool": "b"})"),
             ContainsSubstring("trains them on another pool"));
  CHECK_THAT(refused(R"({"run": "words", "repeats": 2})"), ContainsSubstring("repeats"));
  CHECK_THAT(refused(R"([])"), ContainsSubstring("at least one phase"));
  CHECK_THAT(refused(""), ContainsSubstring("at least one phase"));
}

}  // namespace stratagem::study
