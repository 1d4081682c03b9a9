// Changes that make a run fit: each is checked by simulating it again.
#include "study/remedies.hpp"

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;
using study::Outcome;
using study::Remedy;

namespace {

study::Run run_of(const std::string& model, const std::string& training,
                  const std::string& strategy, int gpus, const std::string& cluster = "") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const TemporaryFolder folder;
  folder.write("a.json", R"({"question": "?", "runs": [{"name": "it", "model": )" + model +
                             R"(, "cluster": {"preset": "dgx-2h", "gpus": )" +
                             std::to_string(gpus) + cluster + R"(}, "training": )" + training +
                             R"(, "strategy": )" + strategy + R"(, "profile": ")" + shipped +
                             R"(/profiles/v100-sxm3-450w.json", "stack": ")" + shipped +
                             R"(/stacks/megatron-2020.json"}]})");
  return study::read_scenario((folder.path() / "a.json").string()).runs.front();
}

const std::string gpt_1b = R"({"family": "gpt", "layers": 24, "hidden": 2048, "heads": 16,
                               "sequence": 1024, "vocabulary": 51200})";
const std::string batch_64 =
    R"({"global_batch": 64, "micro_batch": 32, "precision": "fp16", "optimizer": "adam"})";

}  // namespace

TEST_CASE("every remedy fits when it is simulated, and the cheapest come first") {
  const study::Run run = run_of(gpt_1b, batch_64, R"({"data": 2})", 2);
  REQUIRE(study::simulate(run, {}).outcome.status == Outcome::Status::out_of_memory);
  const std::vector<Remedy> found = study::remedies(run, 3);
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const study::Run changed = study::with_settings(run, found[i].settings);
    const study::Simulated again = study::simulate(changed, {});
    CHECK(again.outcome.status == Outcome::Status::ok);
    CHECK(again.outcome.memory.used == found[i].used);
    CHECK(again.outcome.metrics->iteration_time == found[i].iteration_time);
    CHECK(changed.batch.global == run.batch.global);
    CHECK(changed.gpus == run.gpus);
    if (i > 0) CHECK(found[i - 1].iteration_time <= found[i].iteration_time);
  }
}

TEST_CASE("memory first: what surely misfits is not simulated, all else as if nobody asked") {
  const auto both = [](int micro_batch) {
    const std::string batch = R"({"global_batch": 64, "micro_batch": )" +
                              std::to_string(micro_batch) +
                              R"(, "precision": "fp16", "optimizer": "adam"})";
    const study::Run run = run_of(gpt_1b, batch, R"({"data": 2})", 2);
    return std::pair(study::simulate(run, {.memory_first = true}).outcome,
                     study::simulate(run, {}).outcome);
  };
  const auto [bounded, large] = both(32);
  CHECK(bounded.status == Outcome::Status::out_of_memory);
  CHECK_FALSE(bounded.metrics);
  CHECK(bounded.memory.used <= large.memory.used);
  CHECK(bounded.gpu_shortfall <= large.gpu_shortfall);
  CHECK(bounded.gpu_shortfall > Bytes{});
  const auto [asked, small] = both(1);
  REQUIRE(asked.status == Outcome::Status::ok);
  CHECK(asked.metrics->iteration_time == small.metrics->iteration_time);
  CHECK(asked.memory.used == small.memory.used);
  CHECK(asked.tight == small.tight);
}

TEST_CASE("where no single change helps, several at once are tried") {
  // 10e9 parameters on one GPU of 34 GB: the optimizer's 12 bytes have to go, activations too.
  const std::string gpt_10b = R"({"family": "gpt", "layers": 12, "hidden": 8192, "heads": 64,
                                  "sequence": 1024, "vocabulary": 51200})";
  const std::string batch_16 =
      R"({"global_batch": 16, "micro_batch": 16, "precision": "fp16", "optimizer": "adam"})";
  const std::vector<Remedy> found =
      study::remedies(run_of(gpt_10b, batch_16, R"({"data": 1})", 1), 3);
  REQUIRE_FALSE(found.empty());
  for (const Remedy& remedy : found) {
    INFO(remedy.change);
    CHECK(remedy.change.find("offload") != std::string::npos);
    CHECK(remedy.change.find(", \"") != std::string::npos);
  }
}

TEST_CASE("long samples are divided, and what fills the host comes back from it") {
  const auto helps = [](const study::Run& run, const std::string& change) {
    REQUIRE(study::simulate(run, {}).outcome.status == Outcome::Status::out_of_memory);
    const std::vector<Remedy> found = study::remedies(run, 100);
    return std::ranges::any_of(found, [&](const Remedy& one) { return one.change == change; });
  };
  const std::string long_samples = R"({"family": "gpt", "layers": 24, "hidden": 2048, "heads": 16,
    "sequence": 4096, "vocabulary": 51200})";
  const std::string each =
      R"({"global_batch": 4, "micro_batch": 1, "precision": "fp16", "optimizer": "adam"})";
  CHECK(helps(run_of(long_samples, each, R"({"data": 4, "zero": 1})", 4),
              R"("context": 2, "data": 2)"));
  const std::string small = R"({"family": "gpt", "layers": 12, "hidden": 2048, "heads": 16,
    "sequence": 1024, "vocabulary": 51200})";
  CHECK(helps(run_of(small, each, R"({"offload": "optimizer"})", 1, R"(, "host_memory": "4 GB")"),
              R"("offload": "none")"));
}

// 16 bytes of each of 175e9 parameters are 2.8 TB, and a DGX-2H has 1.65.
TEST_CASE("nothing helps a model that fits neither the GPU nor its host") {
  const std::string gpt_175b = R"({"family": "gpt", "layers": 96, "hidden": 12288, "heads": 96,
                                   "sequence": 1024, "vocabulary": 51200})";
  const std::string batch_1 =
      R"({"global_batch": 1, "micro_batch": 1, "precision": "fp16", "optimizer": "adam"})";
  CHECK(study::remedies(run_of(gpt_175b, batch_1, "{}", 1), 3).empty());
}
