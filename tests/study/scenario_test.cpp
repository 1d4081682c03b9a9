// Scenarios: defaults below every run, names of files, batches.
#include "study/scenario.hpp"

#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "study/plan_of.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

study::Scenario read(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("a.json", text);
  return study::read_scenario((folder.path() / "a.json").string());
}

}  // namespace

TEST_CASE("a run takes from the defaults, key by key, what it does not say") {
  const study::Scenario scenario = read(small_scenario());
  REQUIRE(scenario.runs.size() == 2);
  const study::Run& alone = scenario.runs[0];
  const study::Run& four = scenario.runs[1];
  CHECK(devices_of(alone.options) == 1);
  CHECK(alone.cluster.design().name == "DGX-2");  // its "cluster" states the GPUs only
  CHECK(four.options.tensor == 2);
  CHECK(four.options.recompute.what == "none");
  CHECK(four.compared.baseline == "alone");
  CHECK(four.origin.path == "/runs/1");
  // All settings after defaults, for the report.
  CHECK_THAT(alone.resolved.text(), ContainsSubstring(R"("cluster":{"gpus":1,"preset":"dgx-2"})"));
}

TEST_CASE("50 ms to the switch between servers are waited for as often as gradients go that way") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const study::Scenario scenario = read(R"({
    "question": "Does a 50 ms link between servers matter?",
    "defaults": {
      "model": {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32,
                "vocabulary": 128},
      "cluster": {"preset": "dgx-2", "nodes": 2},
      "profile": ")" + shipped + R"(/profiles/v100-sxm3.json",
      "stack": ")" + shipped + R"(/stacks/plain.json",
      "training": {"global_batch": 32, "micro_batch": 1, "precision": "fp16", "optimizer": "adam"},
      "strategy": {"data": 32}},
    "runs": [
      {"name": "near", "cluster": {"fabric": {"kind": "single_switch", "speed":
        {"bandwidth": "25 GB/s", "latency": "1 us"}}}},
      {"name": "far", "cluster": {"fabric": {"kind": "single_switch", "speed":
        {"bandwidth": "25 GB/s", "latency": "50 ms", "switch_latency": "50 ms"}}}}]})");
  const auto time = [](study::Run run) {
    run.profile.launch.value = {};  // else the host launches the next iteration meanwhile
    return study::simulate(run, {}).outcome.metrics->iteration_time;
  };
  // One all-reduce, a ring over N = 2 servers: 2(N-1) steps over two ports, and no second switch.
  CHECK(close(time(scenario.runs[1]) - time(scenario.runs[0]), 2 * 2 * 50_ms, 1e-3));
}

TEST_CASE("settings of objects within a strategy are read and reported in their order") {
  const std::string operators = R"("operators": {"*.fc1": "n", "*.gelu": ""}, )";
  const study::Scenario scenario =
      read(with(small_scenario(), "\"tensor\": 2", operators + "\"tensor\": 2"));
  const study::Run& run = scenario.runs[1];
  REQUIRE(run.options.division.operators.size() == 2);
  CHECK(run.options.division.operators[0].first == "*.fc1");
  CHECK_THAT(run.resolved.text(), ContainsSubstring(R"("operators":{"*.fc1":"n","*.gelu":""})"));
}

TEST_CASE("what a stage of a DGX-1V swaps goes over two NVLinks where there are two") {
  const std::string on_dgx1 =
      with(with(small_scenario(), R"("preset": "dgx-2")", R"("preset": "dgx-1v")"),
           R"("layers": 2)", R"("layers": 4)");
  // Pairs of GPUs that exchange something though their stages are no neighbours.
  const auto far_pairs = [&](const std::string& swap) {
    const study::Scenario scenario = read(
        with(on_dgx1, R"("tensor": 2, "data": 2,)", R"("pipeline": 4, "swap": )" + swap + ","));
    const study::Run& run = scenario.runs[1];
    std::set<std::pair<int, int>> pairs;
    for (const auto& [ranks] : study::program_of(run, study::plan_of(run)).communicators) {
      if (ranks.size() == 2 && std::abs(ranks[0] - ranks[1]) > 1)
        pairs.insert(std::minmax(ranks[0], ranks[1]));
    }
    return pairs;
  };
  // Of GPUs 0 to 3, GPU 0 has two links to GPU 3 and GPU 1 to GPU 2, and one to the two others.
  const std::set<std::pair<int, int>> zero_and_three = {{0, 3}};
  CHECK(far_pairs(R"({"layers": 1, "to": "peer"})") == zero_and_three);
  CHECK(far_pairs(R"({"layers": 2, "to": "peer"})") == zero_and_three);
}

TEST_CASE("what ranks compute redundantly does not count as the model's work") {
  const auto flops = [](const std::string& operators) {
    const study::Scenario scenario =
        read(with(small_scenario(), "\"tensor\": 2", operators + "\"tensor\": 2"));
    return study::simulate(scenario.runs[1], {}).outcome;
  };
  const auto divided = flops("");
  const auto replicated = flops(R"("operators": {"layers.*": ""}, )");
  CHECK(replicated.model_flops == divided.model_flops);
  CHECK(replicated.metrics->hardware_flops > 1.2 * divided.metrics->hardware_flops);
  CHECK(close(divided.model_flops, divided.metrics->hardware_flops, 1e-12));
}

TEST_CASE(
    "empty slots of experts are no work of the model: they make it slower, not more efficient") {
  const auto outcome = [](int factor) {
    const std::string larger = R"("hidden": 1024, "heads": 16, "sequence": 512, "vocabulary": 128,
        "experts": 4, "experts_per_token": 2, "capacity_factor": )" +
                               std::to_string(factor);
    const study::Scenario scenario =
        read(with(small_scenario(),
                  R"("hidden": 64, "heads": 4, "sequence": 32, "vocabulary": 128)", larger));
    return study::simulate(scenario.runs[0], {}).outcome;
  };
  const auto one = outcome(1), four = outcome(4);
  CHECK(close(four.model_flops, one.model_flops, 1e-12));
  CHECK(four.metrics->hardware_flops > 1.5 * one.metrics->hardware_flops);
  CHECK(four.model_rate() < one.model_rate());
}

TEST_CASE("a model that repeats its forward pass wants a schedule that does") {
  const std::string model =
      R"({"family": "evoformer", "layers": 1, "msa_rows": 4, "residues": 8, "passes": 3})";
  std::string text = small_scenario();
  const std::size_t at = text.find("\"model\": ") + 9;
  text.replace(at, text.find('}', at) + 1 - at, model);
  const study::Scenario scenario = read(text);
  try {
    simulate(scenario.runs[0], {});
    FAIL("1F1B runs three forward passes");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("/strategy/schedule: expected a schedule for a model "
                                 "whose forward pass runs 3 times, found 1f1b"));
  }
}

TEST_CASE("an error of settings over a run says where the run stands") {
  const study::Scenario scenario = read(small_scenario());
  const auto where = [&](const Json& strategy) {
    try {
      simulate(with_settings(scenario.runs[1], Json::object().set("strategy", strategy)), {});
    } catch (const InputError& error) {
      return error.path;
    }
    return std::string();
  };
  const Json two = Json::array().push(1).push(2);
  CHECK(where(Json::object().set("tensor", 3)) == "/runs/1/strategy");
  CHECK(where(Json::object().set("pipeline", 2).set("layers_per_stage", two).set("data", 1)) ==
        "/runs/1/strategy/layers_per_stage");
}

TEST_CASE("data ranks that nobody counts are those that the other degrees leave") {
  const auto data = [](const std::string& strategy, int gpus) {
    const TemporaryFolder folder;
    folder.write("a.json", with(small_scenario(), R"("runs": [)",
                                R"("runs": [{"name": "left", "cluster": {"gpus": )" +
                                    std::to_string(gpus) + R"(}, "strategy": )" + strategy + "},"));
    const auto run = study::read_scenario((folder.path() / "a.json").string()).runs.front();
    return run.refused ? 0 : run.options.data;
  };
  CHECK(data("{}", 4) == 4);
  CHECK(data(R"({"tensor": 2})", 4) == 2);
  CHECK(data(R"({"tensor": 2, "pipeline": 2})", 4) == 1);
  CHECK(data(R"({"tensor": 2, "data": 2})", 4) == 2);
  CHECK(data(R"({"tensor": 2, "data": 1})", 4) == 0);  // what is said counts
  CHECK(data(R"({"tensor": 4})", 6) == 0);
  CHECK(data(R"({"expert": 2, "data": 4})", 4) == data(R"({"expert": 2})", 4));
}

TEST_CASE("a batch divides into micro-batches of every data-parallel rank") {
  const study::Scenario scenario = read(small_scenario());
  CHECK(scenario.runs[0].batch.micro_batches == 4);  // 8 = 1 rank * 2 samples * 4
  CHECK(scenario.runs[1].batch.micro_batches == 2);  // 8 = 2 ranks * 2 samples * 2
}

TEST_CASE("ranks on processors run a scenario with a profile that knows their memory") {
  const TemporaryFolder folder;
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  std::ifstream stream(shipped + "/profiles/v100-sxm3.json");
  const std::string profile{std::istreambuf_iterator<char>(stream), {}};
  folder.write(
      "processor.json",
      with(profile, "\"nvlink_efficiency\": {",
           R"("memory_efficiency": {"value": 0.25, "provenance": "assumed", "source": "test"},
                       "nvlink_efficiency": {)"));
  std::filesystem::copy(shipped + "/stacks/megatron-2019.json", folder.path() / "base.json");
  const auto stack = [&](const std::string& nccl) {
    folder.write(nccl + ".json",
                 R"({"name": "x", "base": "base", "source": "test", "nccl": ")" + nccl + "\"}");
    return (folder.path() / (nccl + ".json")).string();
  };
  std::string text = with(small_scenario(), R"({"preset": "dgx-2", "gpus": 4})",
                          R"({"preset": "cpu-host", "ranks_per_node": 4, "ranks": 4})");
  text = with(text, R"("cluster": {"gpus": 1})", R"("cluster": {"ranks": 1})");
  text = with(text, shipped + "/stacks/megatron-2019.json", stack("none"));
  const std::string knowing =
      with(text, shipped + "/profiles/v100-sxm3.json", (folder.path() / "processor.json").string());
  const study::Scenario scenario = read(knowing);
  REQUIRE(scenario.runs.size() == 2);
  CHECK(scenario.runs[1].cluster.gpus() == 4);
  const auto alone = simulate(scenario.runs[0], {});
  const auto four = simulate(scenario.runs[1], {});
  CHECK(alone.outcome.metrics->exposed_communication == 0_s);
  CHECK(four.outcome.metrics->exposed_communication > 0_s);
  const auto& weakest = four.outcome.weakest.profile;
  CHECK(std::ranges::find(weakest, "/collective/memory_efficiency") != weakest.end());

  // Measured times stand in the formula's place, and twice as long ones take twice as long.
  const auto with_times = [&](const std::string& millisecond) {
    std::string times;
    for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
      times += std::string(times.empty() ? "\"" : ", \"") + kind +
               R"(": {"provenance": "measured", "source": "test", "ranks": {"2": [["1 KiB", ")" +
               millisecond + R"("], ["1 GiB", ")" + millisecond + R"("]]}})";
    const std::string file = millisecond + ".json";
    folder.write(file, with(folder.read("processor.json"), "\"nvlink_efficiency\": {",
                            "\"times\": {" + times + "}, \"nvlink_efficiency\": {"));
    const study::Scenario measured =
        read(with(text, shipped + "/profiles/v100-sxm3.json", (folder.path() / file).string()));
    return simulate(measured.runs[1], {});
  };
  const auto once = with_times("1 ms"), twice = with_times("2 ms");
  const Seconds exposed = once.outcome.metrics->exposed_communication;
  CHECK(exposed > 1_ms);
  CHECK(close(twice.outcome.metrics->exposed_communication, 2 * exposed, 0.02));
  const auto& named = once.outcome.weakest.profile;
  for (const char* formula : {"memory_efficiency", "base", "node_step", "pcie_efficiency"})
    CHECK(std::ranges::find(named, std::string("/collective/") + formula) == named.end());

  const auto complaint = [](const std::string& bad) -> std::string {
    try {
      for (const study::Run& run : read(bad).runs) simulate(run, {});
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(complaint(text), ContainsSubstring("a profile with memory_efficiency"));
  CHECK_THAT(complaint(with(knowing, stack("none"), stack("2.18.6"))),
             ContainsSubstring("GPUs, for collectives of NCCL 2.18.6, found CPU host"));
  CHECK_THAT(complaint(with(knowing, "\"ranks\": 4", "\"gpus\": 4")),
             ContainsSubstring("the key \"ranks\" for CPU host, found \"gpus\""));
  CHECK_THAT(complaint(with(knowing, "\"ranks_per_node\": 4", "\"ranks_per_node\": 5")),
             ContainsSubstring("/cluster/ranks_per_node: expected a multiple of the 2 ranks"));
  CHECK_THAT(complaint(with(small_scenario(), "\"gpus\": 4", "\"ranks_per_node\": 4, \"gpus\": 4")),
             ContainsSubstring("a server whose ranks are processors, found DGX-2"));
  CHECK_THAT(complaint(with(knowing, "\"tensor\": 2, \"data\": 2",
                            "\"data\": 4, \"zero\": 1, \"offload\": \"optimizer\"")),
             ContainsSubstring("whose ranks are processors"));
}

TEST_CASE("nodes without a number of GPUs mean all of their GPUs") {
  std::string text = with(small_scenario(), "\"gpus\": 4", "\"nodes\": 1");
  text =
      with(with(text, "\"data\": 2", "\"data\": 8"), "\"global_batch\": 8", "\"global_batch\": 32");
  const study::Scenario scenario = read(text);
  CHECK(devices_of(scenario.runs[1].options) == 16);  // a DGX-2
  CHECK(scenario.runs[1].cluster.gpus() == 16);
}

TEST_CASE("a scenario needs no defaults, and may name its schema for editors") {
  std::string text =
      with(small_scenario(), "\"defaults\": {",
           "\"$schema\": \"s.json\", \"runs\": [ { \"name\": \"only\", \"strategy\": {},");
  text = text.substr(0, text.find("\n  },\n  \"runs\"")) + "} ] }";
  text = with(with(text, "\"baseline\": \"alone\",", ""), "\"gpus\": 4", "\"gpus\": 1");
  const study::Scenario scenario = read(text);
  REQUIRE(scenario.runs.size() == 1);
  CHECK(scenario.runs[0].compared.baseline.empty());
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
  const study::Scenario scenario = study::read_scenario((folder.path() / "a.json").string());
  CHECK(scenario.runs[0].profile.name == "a100-sxm4-80gb");
  CHECK(scenario.runs[0].stack.name == "megatron-2019");
}

// At twice the rate for linear layers, and nothing else faster, a large model takes less time, but
// more than half of it.
TEST_CASE("fp8 runs on a profile that has constants for it, and on no other") {
  const TemporaryFolder folder;
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  cost::Profile profile = cost::read_profile(shipped + "/profiles/a100-sxm4-80gb.json");
  profile.peak["fp8"] = profile.peak.at("bf16");
  profile.peak["fp8"].value = 2 * profile.peak.at("bf16").value;
  profile.kernels.gemm["fp8"] = profile.kernels.gemm.at("bf16");
  folder.write("fp8.json", cost::to_json(profile).text());
  const std::string text = R"({ "question": "Faster?", "defaults": {
      "model": {"family": "gpt", "layers": 2, "hidden": 8192, "heads": 64, "sequence": 1024,
        "vocabulary": 1024},
      "cluster": {"preset": "dgx-a100", "gpus": 1}, "profile": "fp8.json", "strategy": {},
      "stack": ")" + shipped +
                           R"(/stacks/plain.json",
      "training": {"global_batch": 8, "micro_batch": 8, "optimizer": "sgd"} },
    "runs": [ {"name": "bf16", "training": {"precision": "bf16"}},
              {"name": "fp8", "training": {"precision": "fp8"}} ] })";
  folder.write("a.json", text);
  const std::string file = (folder.path() / "a.json").string();
  const study::Scenario scenario = study::read_scenario(file);
  const auto time = [&](int run) {
    return study::simulate(scenario.runs[run], {}).outcome.metrics->iteration_time;
  };
  CHECK(time(1) < time(0));
  CHECK(time(1) > 0.5 * time(0));
  folder.write("a.json", with(text, "fp8.json", shipped + "/profiles/a100-sxm4-80gb.json"));
  const study::Scenario without = study::read_scenario(file);
  CHECK(!without.runs[0].refused);
  REQUIRE(without.runs[1].refused);
  CHECK_THAT(without.runs[1].refused->what(),
             ContainsSubstring("/runs/1/training/precision") &&
                 ContainsSubstring("a100-sxm4-80gb has constants for (with stack "));
}

TEST_CASE(
    "what a scenario does not say follows from its file, from a run's place and its cluster") {
  const std::string training =
      R"("model": "llama-2-7b", "stack": "plain", "training": {"global_batch": 8, "micro_batch": 1,
      "precision": "fp16", "optimizer": "none"}})";
  const std::string runs = R"("runs": [{"cluster": {"preset": "dgx-2", "gpus": 1}},
      {"cluster": {"preset": "dgx-h100", "gpus": 1}},
      {"name": "own", "cluster": {"preset": "dgx-h100", "gpus": 1}, "profile": "v100-sxm3"}]})";
  const study::Scenario scenario = read("{\"defaults\": {" + training + ", " + runs);
  CHECK(scenario.question == "a");
  REQUIRE(scenario.runs.size() == 3);
  CHECK(scenario.runs[0].name == "run 1");
  CHECK(scenario.runs[1].name == "run 2");
  CHECK(scenario.runs[2].name == "own");
  CHECK(scenario.runs[0].profile.name == scenario.runs[0].cluster.design().gpu);
  CHECK(scenario.runs[1].profile.name == "h100-sxm5");
  CHECK(scenario.runs[2].profile.name == "v100-sxm3");
}
