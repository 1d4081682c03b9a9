// What goes with the optimizer none, with caches and with rewards, and what is refused beside them.
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

/// A run of a small Llama on an H100, with more keys of its model, training and strategy.
Run run_of(const std::string& model, const std::string& training, const std::string& strategy = "",
           int gpus = 1) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const TemporaryFolder folder;
  folder.write("s.json", R"({"question": "?", "runs": [{"name": "one", "profile": ")" + shipped +
                             R"(/profiles/h100-sxm5.json", "stack": ")" + shipped +
                             R"(/stacks/plain.json", "cluster": {"preset": "dgx-h100", "gpus": )" +
                             std::to_string(gpus) + R"(},
  "model": {"family": "llama", "layers": 2, "hidden": 256, "heads": 4, "kv_heads": 2,
            "intermediate": 512, "vocabulary": 1024, "sequence": 64)" +
                             model + R"(},
  "training": {"global_batch": 8, "micro_batch": 2, )" +
                             training + R"(},
  "strategy": {)" + strategy +
                             "}}]}");
  return read_scenario((folder.path() / "s.json").string()).runs.front();
}

const std::string none = R"("precision": "bf16", "optimizer": "none")";
const std::string adam = R"("precision": "bf16", "optimizer": "adam")";

std::string refusal(const std::string& model, const std::string& training,
                    const std::string& strategy = "", int gpus = 1) {
  try {
    const Run run = run_of(model, training, strategy, gpus);
    return run.refused ? run.refused->what() : "";
  } catch (const InputError& error) {
    return error.what();
  }
}

double resident(const std::string& model, const std::string& training) {
  return simulate(run_of(model, training), {}).outcome.memory.resident.value;
}

}  // namespace

TEST_CASE("what nothing is trained for is refused, and what is off is not") {
  for (const std::string key :
       {R"("recompute": "full")", R"("swap": 1)", R"("offload": "optimizer")",
        R"("overlap_gradients": true)", R"("bucket": "1 MiB")", R"("zero": 1)", R"("zero": 2)"}) {
    INFO(key);
    CHECK_THAT(refusal("", none, key), ContainsSubstring("/strategy/") &&
                                           ContainsSubstring("with \"optimizer\": \"none\""));
  }
  for (const std::string key : {R"("recompute": "none")", R"("swap": 0)", R"("offload": "none")",
                                R"("overlap_gradients": false)", R"("zero": 3)"}) {
    INFO(key);
    CHECK(refusal("", none, key) == "");
  }
  CHECK_THAT(refusal(R"(, "frozen": ["*"])", none), ContainsSubstring("/model/frozen: expected"));
  CHECK_THAT(refusal("", R"("precision": "bf16-fp32-gradients", "optimizer": "none")"),
             ContainsSubstring("/training/precision"));
}

TEST_CASE("what is not trained drops nothing") {
  const TemporaryFolder folder;
  folder.write("s.json",
               with(with(small_scenario(), R"("optimizer": "adam")", R"("optimizer": "none")"),
                    R"("strategy": {"recompute": "full"})", R"("strategy": {})"));
  const Scenario scenario = read_scenario((folder.path() / "s.json").string());
  REQUIRE(scenario.runs.front().refused);
  CHECK_THAT(
      scenario.runs.front().refused->what(),
      ContainsSubstring("/model/dropout: expected false") && ContainsSubstring("found true"));
}

TEST_CASE("weights that nobody trains have one copy in fewer bits, and no gradients") {
  constexpr double linear = 2 * (256.0 * 512 + 256.0 * 256 + 3 * 256.0 * 512);
  constexpr double all = 2 * 1024.0 * 256 + linear + 5 * 256.0;
  CHECK(resident("", none) == 2 * all);
  const std::string fp8 = R"("precision": "fp8", "optimizer": "none")";
  CHECK(resident("", fp8) == 2 * all + linear);
}

TEST_CASE("nothing is trained through a cache, with adapters or without") {
  const std::string cache = R"(, "cache": {"room": 100, "tokens": 9})";
  CHECK(refusal(cache, none) == "");
  CHECK(refusal(cache + R"(, "lora": {"rank": 4})", none) == "");
  CHECK_THAT(refusal(cache, adam),
             ContainsSubstring("/training/optimizer: expected \"none\" with a cache"));
  CHECK_THAT(refusal(R"(, "cache": {"room": 70, "tokens": 9})", none),
             ContainsSubstring("/model/cache/room: expected room for 73 tokens"));
  for (const std::string key :
       {R"("window": 8)", R"("sinks": true)", R"("experts": 4)", R"("prefix": 4)",
        R"("attention": "unfused")", R"("head": "values")"})
    CHECK(refusal(cache + ", " + key, none) != "");
  for (const std::string axis : {"context", "ulysses"}) {
    CHECK_THAT(refusal(cache, none, "\"" + axis + "\": 2", 2),
               ContainsSubstring("/strategy/" + axis + ": expected 1 beside a cache"));
  }
  CHECK_THROWS(simulate(run_of(cache, none, R"("token_slices": [32, 32])"), {}));
}

TEST_CASE("answers to one prompt stand in one micro-batch of a rank") {
  CHECK(refusal(R"(, "head": "reward")", adam) == "");
  CHECK(refusal(R"(, "head": "reward", "answers": 2)", adam, R"("data": 2)", 2) == "");
  CHECK_THAT(refusal(R"(, "head": "reward", "answers": 4)", adam, R"("data": 2)", 2),
             ContainsSubstring("/training/micro_batch: expected a multiple of the 4 answers"));
  CHECK_THAT(refusal(R"(, "head": "values", "answers": 2)", adam), ContainsSubstring("answers"));
}

}  // namespace stratagem::study
