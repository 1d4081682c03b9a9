// Scenarios: defaults below every run, names of files, batches.
#include "search/scenario.hpp"

#include "base/input_error.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

search::Scenario read(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("a.json", text);
  return search::read_scenario((folder.path() / "a.json").string());
}

}  // namespace

TEST_CASE("a run takes from the defaults, key by key, what it does not say") {
  const search::Scenario scenario = read(small_scenario());
  REQUIRE(scenario.runs.size() == 2);
  const search::Run& alone = scenario.runs[0];
  const search::Run& four = scenario.runs[1];
  CHECK(alone.options.devices() == 1);
  CHECK(alone.cluster.design().name == "DGX-2");  // its "cluster" states the GPUs only
  CHECK(four.options.tensor == 2);
  CHECK(four.options.recompute == "none");
  CHECK(four.baseline == "alone");
  CHECK(four.path == "/runs/1");
  // All settings after defaults, for the report.
  CHECK_THAT(alone.resolved.text(), ContainsSubstring(R"("cluster":{"gpus":1,"preset":"dgx-2"})"));
}

TEST_CASE("settings of objects within a strategy are read and reported in their order") {
  const std::string operators = R"("operators": {"*.fc1": "n", "*.gelu": ""}, )";
  const search::Scenario scenario =
      read(with(small_scenario(), "\"tensor\": 2", operators + "\"tensor\": 2"));
  const search::Run& run = scenario.runs[1];
  REQUIRE(run.options.operators.size() == 2);
  CHECK(run.options.operators[0].first == "*.fc1");
  CHECK_THAT(run.resolved.text(), ContainsSubstring(R"("operators":{"*.fc1":"n","*.gelu":""})"));
}

TEST_CASE("what ranks compute redundantly does not count as the model's work") {
  const auto flops = [](const std::string& operators) {
    const search::Scenario scenario =
        read(with(small_scenario(), "\"tensor\": 2", operators + "\"tensor\": 2"));
    return search::simulate(scenario.runs[1], {}).outcome.metrics.value();
  };
  const auto divided = flops("");
  const auto replicated = flops(R"("operators": {"layers.*": ""}, )");
  CHECK(replicated.model_flops == divided.model_flops);
  CHECK(replicated.hardware_flops > 1.2 * divided.hardware_flops);
  CHECK(close(divided.model_flops, divided.hardware_flops, 1e-12));
}

TEST_CASE("a model that repeats its forward pass wants a schedule that does") {
  const std::string model =
      R"({"family": "evoformer", "layers": 1, "msa_rows": 4, "residues": 8, "passes": 3})";
  std::string text = small_scenario();
  const std::size_t at = text.find("\"model\": ") + 9;
  text.replace(at, text.find('}', at) + 1 - at, model);
  const search::Scenario scenario = read(text);
  try {
    simulate(scenario.runs[0], {});
    FAIL("1F1B runs three forward passes");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("/strategy/schedule: expected a schedule for a model "
                                 "whose forward pass runs 3 times, found 1f1b"));
  }
}

TEST_CASE("a batch divides into micro-batches of every data-parallel rank") {
  const search::Scenario scenario = read(small_scenario());
  CHECK(scenario.runs[0].micro_batches == 4);  // 8 = 1 rank * 2 samples * 4
  CHECK(scenario.runs[1].micro_batches == 2);  // 8 = 2 ranks * 2 samples * 2
}

TEST_CASE("nodes without a number of GPUs mean all of their GPUs") {
  std::string text = with(small_scenario(), "\"gpus\": 4", "\"nodes\": 1");
  text =
      with(with(text, "\"data\": 2", "\"data\": 8"), "\"global_batch\": 8", "\"global_batch\": 32");
  const search::Scenario scenario = read(text);
  CHECK(scenario.runs[1].options.devices() == 16);  // a DGX-2
  CHECK(scenario.runs[1].cluster.gpus() == 16);
}

TEST_CASE("a scenario needs no defaults, and may name its schema for editors") {
  std::string text =
      with(small_scenario(), "\"defaults\": {",
           "\"$schema\": \"s.json\", \"runs\": [ { \"name\": \"only\", \"strategy\": {},");
  text = text.substr(0, text.find("\n  },\n  \"runs\"")) + "} ] }";
  text = with(with(text, "\"baseline\": \"alone\",", ""), "\"gpus\": 4", "\"gpus\": 1");
  const search::Scenario scenario = read(text);
  REQUIRE(scenario.runs.size() == 1);
  CHECK(scenario.runs[0].baseline.empty());
}

TEST_CASE("profiles and stacks are files beside the scenario, by name") {
  const TemporaryFolder folder;
  for (const char* kind : {"profiles", "stacks"}) {
    std::filesystem::copy("scenarios/" + std::string(kind), folder.path() / kind);
  }
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  folder.write("a.json",
               with(with(small_scenario(), shipped + "/profiles/v100-sxm3.json", "a100-sxm4-80gb"),
                    shipped + "/stacks/megatron-2019.json", "stacks/megatron-2019.json"));
  const search::Scenario scenario = search::read_scenario((folder.path() / "a.json").string());
  CHECK(scenario.runs[0].profile.name == "a100-sxm4-80gb");
  CHECK(scenario.runs[0].stack.name == "megatron-2019");
}

// At twice the rate for linear layers, and nothing else faster, a large model takes less time, but more
// than half of it.
TEST_CASE("fp8 runs on a profile that has constants for it, and on no other") {
  const TemporaryFolder folder;
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  cost::Profile profile = cost::read_profile(shipped + "/profiles/a100-sxm4-80gb.json");
  profile.peak["fp8"] = profile.peak.at("bf16");
  profile.peak["fp8"].value = 2 * profile.peak.at("bf16").value;
  profile.gemm["fp8"] = profile.gemm.at("bf16");
  folder.write("fp8.json", cost::to_json(profile).text());
  const std::string text = R"({ "question": "Faster?", "defaults": {
      "model": {"family": "gpt", "layers": 2, "hidden": 8192, "heads": 64, "sequence": 1024, "vocabulary": 1024},
      "cluster": {"preset": "dgx-a100", "gpus": 1}, "profile": "fp8.json", "strategy": {},
      "stack": ")" + shipped +
                           R"(/stacks/plain.json",
      "training": {"global_batch": 8, "micro_batch": 8, "optimizer": "sgd"} },
    "runs": [ {"name": "bf16", "training": {"precision": "bf16"}},
              {"name": "fp8", "training": {"precision": "fp8"}} ] })";
  folder.write("a.json", text);
  const std::string file = (folder.path() / "a.json").string();
  const search::Scenario scenario = search::read_scenario(file);
  const auto time = [&](int run) {
    return search::simulate(scenario.runs[run], {}).outcome.metrics->iteration_time;
  };
  CHECK(time(1) < time(0));
  CHECK(time(1) > 0.5 * time(0));
  folder.write("a.json", with(text, "fp8.json", shipped + "/profiles/a100-sxm4-80gb.json"));
  CHECK_THROWS_WITH(search::read_scenario(file),
                    ContainsSubstring("/runs/1/training/precision") &&
                        ContainsSubstring("a100-sxm4-80gb has constants for, found \"fp8\""));
}
