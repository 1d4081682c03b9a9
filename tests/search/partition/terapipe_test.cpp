// Slices against every way to cut the grains, and the oracle of the paper's formula.
#include "search/partition/terapipe.hpp"

#include <algorithm>
#include <limits>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/search/partition/partition_problems.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::search {
namespace {

using study::Picoseconds;

TEST_CASE("no slices take less than TeraPipe's") {
  std::mt19937 random(20261126);
  int sliced = 0;
  for (int instance = 0; instance < 300; ++instance) {
    Slicing slicing{.grains = chosen(random, 1, 8),
                    .stages = chosen(random, 1, 8),
                    .micro_batches = chosen(random, 1, 3)};
    slicing.times.assign(slicing.grains, std::vector<Picoseconds>(slicing.grains + 1));
    for (auto& row : slicing.times) {
      for (Picoseconds& time : row) time = chosen(random, 1, 20);
    }
    Picoseconds best = std::numeric_limits<Picoseconds>::max();
    for (int parts = 1; parts <= slicing.grains; ++parts) {
      each_cut(slicing.grains, parts, [&](const std::vector<int>& ends) {
        Picoseconds sum = 0, longest = 0;
        for (std::size_t k = 0; k < ends.size(); ++k) {
          const Picoseconds own = slicing.times[k == 0 ? 0 : ends[k - 1]][ends[k]];
          sum += own;
          longest = std::max(longest, own);
        }
        best = std::min(best, slicing.micro_batches * sum + (slicing.stages - 1) * longest);
      });
    }
    const std::vector<int> found = best_slices(slicing);
    REQUIRE(found.back() == slicing.grains);
    CHECK(time_of_slices(slicing, found) == best);
    sliced += found.size() > 1 ? 1 : 0;
  }
  CHECK(sliced > 100);
}

TEST_CASE("slices take their sum on one stage and the longest of them on each of the others") {
  // 8 + 3 x 3, and 21 + 7 x 5.
  const auto taken = [](int stages, const std::vector<Picoseconds>& slices) {
    const auto grains = static_cast<int>(slices.size());
    Slicing slicing{.grains = grains, .stages = stages};
    slicing.times.assign(grains, std::vector<Picoseconds>(grains + 1, 1000));
    std::vector<int> ends;
    for (int k = 0; k < grains; ++k) {
      slicing.times[k][k + 1] = slices[k];
      ends.push_back(k + 1);
    }
    return time_of_slices(slicing, ends);
  };
  CHECK(taken(4, {3, 2, 2, 1}) == 17);
  CHECK(taken(8, {5, 4, 4, 3, 3, 2}) == 56);
}

TEST_CASE("a long sequence in few micro-batches is sliced, and then takes less") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const TemporaryFolder folder;
  folder.write("a.json", R"({"question": "?", "runs": [{"name": "one",
    "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 1536,
      "vocabulary": 1024},
    "cluster": {"preset": "dgx-2", "gpus": 8}, "profile": ")" +
                             shipped + R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
                             R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 2, "micro_batch": 1, "precision": "fp16", "optimizer": "adam"},
    "strategy": {"pipeline": 8, "schedule": "gpipe"}}]})");
  const study::Run run = study::read_scenario((folder.path() / "a.json").string()).runs.front();
  const auto found = searcher("terapipe").propose(run);
  REQUIRE(found);
  REQUIRE(found->parts.size() > 1);
  const study::Run sliced =
      study::with_settings(run, Json::object().set("strategy", found->strategy));
  const Seconds whole = study::simulate(run, {}).outcome.metrics->iteration_time;
  CHECK(study::simulate(sliced, {}).outcome.metrics->iteration_time < whole);
  // Later slices of equally many tokens attend to more.
  const JsonReader strategy = JsonReader::from_text(found->strategy.text(), "found");
  const auto tokens = strategy.at("token_slices").elements();
  int alike = 0;
  for (std::size_t later = 1; later < tokens.size(); ++later) {
    for (std::size_t k = 0; k < later; ++k) {
      if (tokens[k].whole_number() != tokens[later].whole_number()) continue;
      ++alike;
      CHECK(found->parts[later].time > found->parts[k].time);
    }
  }
  CHECK(alike > 0);
}

}  // namespace
}  // namespace stratagem::search
