// Sweeps against trying everything.
#include "search/sweep.hpp"

#include <algorithm>
#include <random>

#include "base/input_error.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"
#include "tests/search/small_space.hpp"

namespace stratagem::search {
namespace {

struct Tried {
  std::size_t number = 0;
  double score = 0;
};

double score(Objective objective, Seconds time, int gpus, Bytes memory) {
  return objective == Objective::time   ? time.value
         : objective == Objective::cost ? time.value * gpus
                                        : memory.value;
}

/// All plans that fit, best first.
std::vector<Tried> try_everything(const Space& space, Objective objective) {
  std::vector<Tried> tried;
  for (std::size_t i = 0; i < space.size(); ++i) {
    try {
      const study::Run run = study::run_over(space.defaults(), space.settings(i), "one");
      const study::Outcome outcome = study::simulate_or_refuse(run, {}).outcome;
      if (outcome.status == study::Outcome::Status::ok)
        tried.push_back({i, score(objective, outcome.metrics->iteration_time, outcome.gpus,
                                  outcome.memory.used)});
    } catch (const InputError&) {
      // no plan: its ranks do not divide the GPUs
    }
  }
  std::ranges::stable_sort(tried, {}, &Tried::score);
  return tried;
}

/// Some of a list's elements, at least one.
std::string some_of(std::mt19937& random, const std::vector<std::string>& all) {
  std::string list;
  for (const std::string& one : all) {
    if (random() % 2 == 0) list += (list.empty() ? "" : ", ") + one;
  }
  return "[" + (list.empty() ? all[random() % all.size()] : list) + "]";
}

std::string random_space(std::mt19937& random) {
  const std::string keys =
      R"({"gpus": )" + some_of(random, {"4", "8"}) + R"(, "micro_batch": )" +
      some_of(random, {"1", "2"}) + R"(, "tensor": )" + some_of(random, {"1", "2"}) +
      R"(, "pipeline": )" + some_of(random, {"1", "2", "4"}) + R"(, "zero": )" +
      some_of(random, {"0", "3"}) + R"(, "recompute": )" +
      some_of(random, {"\"none\"", "\"full\""}) + R"(, "schedule": )" +
      some_of(random, {"\"1f1b\"", "\"gpipe\"", "\"zb-h1\"", "\"dualpipe\""}) + "}";
  // Large enough that computing takes longer than launching.
  return with(small_space(keys, R"({"sequence_parallel": false})"),
              R"("hidden": 64, "heads": 4, "sequence": 32)",
              R"("hidden": 2048, "heads": 16, "sequence": 512)");
}

std::size_t counted(const Swept& swept) {
  std::size_t all = swept.left_out + swept.too_large + swept.not_better + swept.answers.size();
  for (const auto& [alike, refused] : swept.refused) all += refused.combinations;
  return all;
}

}  // namespace

TEST_CASE("the best plans of random spaces are those that trying everything finds") {
  std::mt19937 random(1);
  const TemporaryFolder folder;
  int pruned = 0, found = 0;
  for (int i = 0; i < (sanitized ? 4 : 200); ++i) {
    const Space space = read(folder, random_space(random));
    const auto objective = static_cast<Objective>(i % 3);
    const std::size_t best = 1 + i % 4;
    INFO(i << ": " << folder.read("space.json"));
    const std::vector<Tried> all = try_everything(space, objective);
    const Swept swept = sweep(space, {.objective = objective, .best = best});
    CHECK(counted(swept) == space.size());
    REQUIRE(swept.answers.size() >= std::min(best, all.size()));
    for (std::size_t k = 0; k < std::min(best, all.size()); ++k) {
      CHECK(swept.answers[k].number == all[k].number);
      const Trial& trial = swept.answers[k].trial;
      CHECK(score(objective, trial.iteration_time, trial.gpus, trial.memory) == all[k].score);
    }
    pruned += static_cast<int>(swept.not_better);
    found += static_cast<int>(swept.answers.size());
  }
  INFO(pruned << " not simulated, " << found << " simulated");
  CHECK((sanitized || pruned > found / 10));
}

TEST_CASE(
    "bounds are below what is simulated, and answers do not depend on the number of threads") {
  const TemporaryFolder folder;
  const Space space = read(folder, small_space(R"({"micro_batch": [1, 2], "tensor": [1, 2],)"
                                               R"( "pipeline": [1, 2], "zero": [0, 3]})",
                                               R"({"recompute": "none", "schedule": "1f1b",)"
                                               R"( "sequence_parallel": false})"));
  const Swept one = sweep(space, {.best = 3}), many = sweep(space, {.best = 3, .threads = 4});
  REQUIRE(one.answers.size() == many.answers.size());
  CHECK(one.simulated == many.simulated);
  CHECK(one.refused.size() == many.refused.size());
  for (std::size_t i = 0; i < one.answers.size(); ++i) {
    CHECK(one.answers[i].number == many.answers[i].number);
    const Trial& trial = one.answers[i].trial;
    CHECK(trial.iteration_time == many.answers[i].trial.iteration_time);
    CHECK(one.answers[i].bounds.iteration_time <= trial.iteration_time);
    CHECK(one.answers[i].bounds.memory <= trial.memory);
  }
}

TEST_CASE("an empty space says why, and which plan lacks the least") {
  const TemporaryFolder folder;
  const std::string text = small_space(R"({"pipeline": [1, 3], "tensor": [1, 4]})",
                                       R"({"recompute": "none", "schedule": "1f1b", "zero": 0,)"
                                       R"( "sequence_parallel": false})",
                                       R"(, "micro_batch": 1)");
  // A GPT of 26 billion parameters and more does not fit on four V100s, however it is divided.
  const Swept swept = sweep(read(folder, with(with(text, "\"hidden\": 64", "\"hidden\": 16384"),
                                              "\"vocabulary\": 128", "\"vocabulary\": 512")),
                            {});
  CHECK(swept.answers.empty());
  CHECK(swept.too_large == 2);
  CHECK(swept.nearest == 2);  // tensor 4, pipeline 1
  CHECK(swept.nearest_lacks > 10_GB);
  CHECK_THAT(swept.nearest_reason, ContainsSubstring("needs at least"));
  REQUIRE(swept.refused.size() == 1);
  CHECK(swept.refused.begin()->first.starts_with("strategy: "));
  CHECK(swept.refused.begin()->second.combinations == 2);
  CHECK_THAT(swept.refused.begin()->second.reason, ContainsSubstring("found 3 and 4 GPUs"));
}

TEST_CASE("keys of the defaults that nobody asks for are refused") {
  const TemporaryFolder folder;
  const std::string keys = R"({"tensor": [1, 2], "pipeline": [1], "micro_batch": [1]})";
  const std::string good = small_space(keys, R"({"zero": 0, "recompute": "none"})");
  CHECK_NOTHROW(sweep(read(folder, good), {}));
  for (const auto& [right, wrong] : {std::pair("\"hidden\"", "\"hiden\""),
                                     {"\"global_batch\"", "\"globl_batch\""},
                                     {"\"zero\"", "\"zerro\""},
                                     {"\"recompute\": \"none\"", "\"overlap_gradient\": true"},
                                     {"\"preset\"", "\"preset\": \"dgx-2\", \"gpu\""},
                                     {"\"stack\"", "\"stacks\": 1, \"stack\""}}) {
    INFO(wrong);
    CHECK_THROWS_AS(sweep(read(folder, with(good, right, wrong)), {}), InputError);
  }
  // Neither are keys that are set over the defaults.
  folder.write("good.json", good);
  const std::string file = (folder.path() / "good.json").string();
  const auto set = [&](const char* change) {
    return sweep(Space::read(file, {study::read_change(change, false, "--set")}), {});
  };
  CHECK_NOTHROW(set("model.layers=4"));
  CHECK_THROWS_WITH(set("model.num_layers=4"), ContainsSubstring("--set model.num_layers=4: "));
  CHECK_THROWS_WITH(set("cluster.memory=40GB"), ContainsSubstring("unknown key"));
}

TEST_CASE("the front has what no other answer beats in time, memory and GPUs") {
  const auto answer = [](double seconds, double bytes, int gpus) {
    Answer one;
    one.trial.iteration_time = Seconds{seconds};
    one.trial.memory = Bytes{bytes};
    one.trial.gpus = gpus;
    return one;
  };
  const std::vector<Answer> answers = {answer(2, 5, 8), answer(1, 9, 8), answer(3, 5, 8),
                                       answer(3, 5, 4), answer(2, 5, 8), answer(4, 4, 8)};
  std::vector<const Answer*> expected = {&answers[1], &answers[0], &answers[3], &answers[5]};
  CHECK(front(answers) == expected);
}

}  // namespace stratagem::search
