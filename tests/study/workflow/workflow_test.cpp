// Phases of RLHF against hand formulas, and against the same passes simulated one by one.
#include <algorithm>
#include <cmath>
#include <string>

#include "study/scenario.hpp"
#include "study/workflow/outcome.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

constexpr double layers = 2, hidden = 256, groups = 2, width = 64, inner = 512, words = 1024;
constexpr int sequence = 64, samples = 8;

/// Parameters of a Llama without its head: table, layers of QKV, projection, gate, up and down, norms.
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
  {"name": "stages", "strategy": {"pipeline": 2, "tensor": 1, "data": 1}},
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
    const auto of = [&](const std::string& model) { return pool.weights.at(model).value * parts; };
    // Norms and the column of a number lie whole on every tensor rank.
    const double whole = parts == 1 ? 0 : (2 * layers + 1) * hidden;
    const double column = parts == 1 ? 0 : hidden;
    CHECK(of("actor") == 16 * (with_words + whole));
    CHECK(of("critic") == 16 * (with_number + whole + column));
    CHECK(of("reference") == 2 * (with_words + whole));
    CHECK(of("scores") == 2 * (with_number + whole + column));
    CHECK(pool.phase != "");
    const Scenario all = read(scenario(all_four, strategy));
    const Generation answers = generate(all.runs[0], 32, {});
    const Simulated& last = answers.ends.back().simulated;
    Bytes caches;
    for (const program::Resident& one : last.program.sequences[0].residents)
      if (one.category == program::Category::caches) caches += one.bytes;
    CHECK(caches.value == 2 * layers * groups * width * sequence * samples * 2 / ranks);
  }
}

TEST_CASE("an answer takes its prompt's pass and one pass for each later token") {
  for (const std::string strategy : {R"({"data": 2})", R"({"tensor": 2})"}) {
    for (const std::string stack : {"plain", "megatron-core-te"}) {
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
      CHECK(answer.simulated <= 31);
    }
  }
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
  CHECK(answer.traffic.value > 1023 * least(1536));
  CHECK(answer.time > answer.traffic);
}

TEST_CASE("phases of one pool follow each other, and those of two pools run side by side") {
  const std::string in_turn =
      R"({"run": "words"}, [{"run": "actor", "repeat": 3}, {"run": "critic", "repeat": 2}])";
  const std::string beside =
      R"({"run": "words", "pool": "a"}, [{"run": "actor", "repeat": 3, "pool": "a"},
         {"run": "critic", "repeat": 2, "pool": "b"}], {"run": "values", "pool": "b"})";
  const WorkflowOutcome one = outcome_of(scenario(in_turn, R"({"tensor": 2})"));
  const WorkflowOutcome two = outcome_of(scenario(beside, R"({"tensor": 2})"));
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
             ContainsSubstring("the optimizer none"));
  CHECK_THAT(refused(R"({"run": "words"}, {"run": "one GPU"})"),
             ContainsSubstring("the 2 GPUs of pool all"));
  CHECK_THAT(refused(R"({"run": "actor", "weights": "a"}, {"run": "halves", "weights": "a"})"),
             ContainsSubstring("divides a differently"));
  CHECK_THAT(refused(R"({"run": "words", "repeats": 2})"), ContainsSubstring("repeats"));
  CHECK_THAT(refused(R"([])"), ContainsSubstring("at least one phase"));
  CHECK_THAT(refused(""), ContainsSubstring("at least one phase"));
}

}  // namespace stratagem::study
