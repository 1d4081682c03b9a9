// Whether predicted and measured times agree on which plans are fast.
#include "study/rankings.hpp"

#include "study/scenario.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;
using study::Ranking;

namespace {

/// Runs of a small GPT with these micro-batches and measured times.
std::string measured_runs(const std::vector<std::pair<int, std::string>>& runs,
                          const std::string& more = "") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  std::string text = R"({"question": "?", "defaults": {
    "model": {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32,
      "vocabulary": 128},
    "cluster": {"preset": "dgx-2", "gpus": 1}, "profile": ")" +
                     shipped + R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
                     R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 64, "precision": "fp16", "optimizer": "adam"},
    "strategy": {}}, "runs": [)";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::string(R"({"name": "micro-batch )") +
            std::to_string(runs[i].first) + R"(", "training": {"micro_batch": )" +
            std::to_string(runs[i].first) + R"(}, "measured": {"iteration_time": {"value": ")" +
            runs[i].second + R"(", "provenance": "published", "source": "a test"}}})";
  }
  return text + more + "]}";
}

std::vector<Ranking> rankings_of(const std::string& scenario) {
  const TemporaryFolder folder;
  folder.write("a.json", scenario);
  const auto played =
      study::play({study::read_scenario((folder.path() / "a.json").string())}, {}, 1);
  return study::rankings(study::validate(played, {}));
}

}  // namespace

TEST_CASE("ranks are compared by Spearman's coefficient, equal values by their mean rank") {
  using study::rank_correlation;
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 1000}) == 1);
  CHECK(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}) == -1);
  CHECK(rank_correlation({1, 1, 1}, {1, 2, 3}) == 0);
  // 1 - 6 sum of d^2 / (n (n^2 - 1)), without equal values: d = 0, 1, -1, 1, -1.
  CHECK(close(rank_correlation({1, 2, 3, 4, 5}, {1, 3, 2, 5, 4}), 1 - 6 * 4.0 / 120, 1e-12));
  // Ranks 1, 2.5, 2.5, 4 beside 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
  CHECK(close(rank_correlation({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12));
}

TEST_CASE("rankings are summed up by group, and all of them") {
  const auto ranking = [](const char* group, double correlation, double loss) {
    study::Ranking one;
    one.group = group;
    one.correlation = correlation;
    one.loss = loss;
    return one;
  };
  const std::vector<study::Ranking> alone = {ranking("b", 1, 0), ranking("b", 0.5, 0.03),
                                             ranking("b", -1, 0.6)};
  REQUIRE(study::summed_up(alone).size() == 1);
  const study::RankingStatistics of_b = study::summed_up(alone)[0];
  CHECK(of_b.group == "b");
  CHECK(of_b.sets == 3);
  CHECK(of_b.median_correlation == 0.5);
  CHECK(of_b.least_correlation == -1);
  CHECK(of_b.near == 2);
  CHECK(close(of_b.mean_loss, 0.21, 1e-12));

  const auto several =
      study::summed_up({ranking("b", 1, 0), ranking("a", 0, 0.1), ranking("b", 0.2, 0.2)});
  REQUIRE(several.size() == 3);
  CHECK(several[0].group == "b");
  CHECK(several[1].sets == 1);
  CHECK(several[2].group == "all");
  CHECK(several[2].sets == 3);
  CHECK(several[2].median_correlation == 0.2);
  CHECK(study::summed_up({}).empty());
}

TEST_CASE("plans of one model, batch and number of GPUs are ranked, but not few") {
  // Larger micro-batches are faster here.
  const auto right =
      rankings_of(measured_runs({{1, "16 s"}, {2, "8 s"}, {4, "4 s"}, {8, "2 s"}, {16, "1 s"}}));
  REQUIRE(right.size() == 1);
  CHECK(right[0].plans == 5);
  CHECK(right[0].correlation == 1);
  CHECK(right[0].chosen == "micro-batch 16");
  CHECK(right[0].fastest == "micro-batch 16");
  CHECK(right[0].loss == 0);
  CHECK(right[0].group == "a");

  const auto wrong =
      rankings_of(measured_runs({{1, "1 s"}, {2, "2 s"}, {4, "4 s"}, {8, "8 s"}, {16, "16 s"}}));
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].correlation == -1);
  CHECK(wrong[0].loss == 15);
  CHECK(wrong[0].fastest == "micro-batch 1");

  CHECK(rankings_of(measured_runs({{1, "16 s"}, {2, "8 s"}, {4, "4 s"}, {8, "2 s"}})).empty());
  // The fifth trains another batch.
  CHECK(rankings_of(measured_runs({{1, "16 s"}, {2, "8 s"}, {4, "4 s"}, {8, "2 s"}},
                                  R"(, {"name": "other", "training": {"micro_batch": 16,
        "global_batch": 128}, "measured": {"iteration_time": {"value": "1 s",
        "provenance": "published", "source": "a test"}}})"))
            .empty());
}
