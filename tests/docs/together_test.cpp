// The examples of docs/guide/extending.md in one scenario, as a user would ask for them.
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::docs_test {

namespace {

constexpr const char* scenario = R"({
  "question": "Do the examples go together?",
  "defaults": {
    "model": { "family": "gpt", "layers": 8, "hidden": 64, "heads": 4, "sequence": 32,
               "vocabulary": 128 },
    "cluster": { "preset": "perlmutter", "gpus": 16 },
    "profile": "HERE/scenarios/profiles/a100-sxm4-40gb.json",
    "stack": "HERE/scenarios/stacks/plain.json",
    "training": { "global_batch": 16, "micro_batch": 1, "precision": "bf16-alone",
                  "optimizer": "adam" } },
  "runs": [
    { "name": "all", "strategy": { "ulysses": 2, "data": 2, "pipeline": 4, "chunks": 2,
      "schedule": "breadth-first", "rank_order": "sp-dp-pp" } } ] })";

}  // namespace

TEST_CASE("what an extension adds to its table can be asked for in a scenario") {
  const TemporaryFolder folder;
  std::string text = scenario;
  for (std::size_t at = text.find("HERE"); at != std::string::npos; at = text.find("HERE"))
    text.replace(at, 4, std::filesystem::current_path().string());
  folder.write("a.json", text);
  const study::Scenario read = study::read_scenario((folder.path() / "a.json").string());
  REQUIRE(read.runs.size() == 1);
  INFO((read.runs[0].refused ? read.runs[0].refused->what() : ""));
  REQUIRE_FALSE(read.runs[0].refused);
  CHECK(order_of_ranks(read.runs[0].options) ==
        std::vector<std::string>{"sp", "dp", "pp", "tp", "cp", "dap"});
  const study::Outcome outcome = study::simulate(read.runs[0], {}).outcome;
  CHECK(outcome.status == study::Outcome::Status::ok);
  CHECK(outcome.gpus == 16);
  // Pipeline rank 1 of 4 (devices 4 to 7) has layers 1 and 5, of 12 h^2 + 13 h parameters each,
  // whole and in 2 bytes, with two states of 4 bytes and no copy in fp32.
  const double parameters = 2 * (12 * 64 * 64 + 13 * 64);
  const auto second = std::ranges::find(outcome.devices, 4, &sim::DeviceMemory::device);
  REQUIRE(second != outcome.devices.end());
  const auto highest = [&](program::Category category) {
    return second->peak.highest[static_cast<std::size_t>(category)].value;
  };
  CHECK(highest(program::Category::parameters) == 2 * parameters);
  CHECK(highest(program::Category::optimizer_states) == 8 * parameters);
}

}  // namespace stratagem::docs_test
