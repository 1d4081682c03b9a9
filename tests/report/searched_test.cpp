// What is printed of searches and of searchers, of plans small enough to know.
#include "report/own_and_found.hpp"
#include "report/search_report.hpp"
#include "search/sweep.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/search/small_space.hpp"

namespace stratagem::report {
namespace {

using search::read;
using search::small_space;

study::Outcome took(double seconds) {
  study::Outcome outcome;
  outcome.status = study::Outcome::Status::ok;
  outcome.metrics.emplace();
  outcome.metrics->iteration_time = Seconds{seconds};
  return outcome;
}

TEST_CASE("all keys that a searcher found are columns of the table") {
  const TemporaryFolder folder;
  const search::Space space =
      read(folder, small_space(R"({"replicas_per_stage": ["pipedream"], "pipeline": [4],
        "data": [1], "tensor": [1], "micro_batch": [1], "zero": [0], "recompute": ["none"],
        "schedule": ["1f1b"], "sequence_parallel": [false]})"));
  const search::Swept swept = search::sweep(space, {});
  REQUIRE(swept.answers.size() == 1);
  const std::string table = search_table(space, swept, 1);
  const std::string headings = table.substr(table.find("rank "), table.find("\n   1 ") - 1);
  CHECK_THAT(headings, ContainsSubstring("replicas_per_stage"));
  CHECK_THAT(headings, ContainsSubstring("layers_per_stage"));
  CHECK_THAT(headings, !ContainsSubstring("tensor"));
}

TEST_CASE("a search shows what a billion tokens cost, and which plans barely fit") {
  const TemporaryFolder folder;
  const search::Space space = search::Space::read(
      JsonReader::from_text(small_space(R"({"pipeline": [1], "data": [4], "tensor": [1],
        "micro_batch": [1, 2], "zero": [0], "recompute": ["none"], "schedule": ["1f1b"],
        "sequence_parallel": [false]})"),
                            (folder.path() / "a.json").string()),
      {{.path = {"cluster", "price_per_gpu_hour"}, .values = {2}}});
  search::Swept swept = search::sweep(space, {});
  REQUIRE(swept.answers.size() == 2);
  const Json json = search_json(space, swept, 2);
  for (const JsonReader& plan : JsonReader::from_text(json.text(), "").at("best").elements()) {
    // Four GPUs for the time of a billion tokens, at 2 an hour.
    const double seconds = 1e9 / plan.at("tokens_per_s").number();
    CHECK(plan.at("cost_per_billion_tokens").number() == Approx(4 * 2 * seconds / 3600));
    CHECK_FALSE(plan.at("tight").boolean());
  }
  CHECK_THAT(search_table(space, swept, 2), ContainsSubstring("cost/Gtoken"));
  CHECK_THAT(search_table(space, swept, 2), !ContainsSubstring("tight"));
  swept.answers[0].trial.tight = true;
  CHECK_THAT(search_table(space, swept, 2), ContainsSubstring("B, tight"));
}

TEST_CASE("--set of a search overrides its defaults and refuses its keys") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.json").string();
  const JsonReader scenario =
      JsonReader::from_text(small_space(R"({"pipeline": [1], "tensor": [1, 2]})"), file);
  const search::Space set =
      search::Space::read(scenario, {{.path = {"training", "precision"}, .values = {"fp16"}}});
  CHECK(set.defaults().at("training").at("precision").text() == "fp16");
  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      const auto space = search::Space::read(scenario, {study::read_change(text, false, "--set")});
      static_cast<void>(search::sweep(space, {}));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* varies : {"tensor=4", R"(strategy={"tensor": 4})", "strategy.pipeline=2"})
    CHECK_THAT(refusal(varies),
               StartsWith(std::string("--set ") + varies + ": expected a key that"));
  CHECK(refusal("bucket=null").empty());
  CHECK_THAT(refusal("training.precision=fp99"), StartsWith("--set training.precision=fp99: "));
}

TEST_CASE("what is stored for a search serves it at another price") {
  const auto context = [](const std::string& text) {
    const JsonReader scenario = JsonReader::from_text(small_space(R"({"tensor": [1, 2]})"), "a");
    return search::context_of(search::Space::read(scenario, {study::read_change(text, false, "")}));
  };
  CHECK(context("price_per_gpu_hour=2") == context("price_per_gpu_hour=3"));
  CHECK(context("global_batch=8") != context("global_batch=16"));
}

TEST_CASE("two searchers do not divide one plan") {
  const TemporaryFolder folder;
  const search::Space space = read(folder, small_space(R"({"pipeline": [2],
        "layers_per_stage": [null, "balanced"], "token_slices": [null, "terapipe"],
        "tensor": [1], "micro_batch": [1], "zero": [0], "recompute": ["none"],
        "schedule": ["1f1b"], "sequence_parallel": [false]})"));
  const search::Swept swept = search::sweep(space, {});
  REQUIRE(swept.refused.size() == 1);
  CHECK(swept.refused.begin()->second.combinations == 1);
  CHECK_THAT(swept.refused.begin()->first, ContainsSubstring("one searcher for a plan"));
}

TEST_CASE("a run that is faster than what was found for it should be kept") {
  CHECK_THAT(own_and_found("order", took(1), took(1.25)),
             ContainsSubstring("Its own order is 25.0 % faster than the one found: keep it."));
  CHECK_THAT(own_and_found("order", took(1), took(1)), !ContainsSubstring("keep it"));
  CHECK_THAT(own_and_found("order", took(1.25), took(1)), !ContainsSubstring("keep it"));
  study::Outcome too_large = took(1.25);
  too_large.status = study::Outcome::Status::out_of_memory;
  CHECK_THAT(own_and_found("order", took(1), too_large), !ContainsSubstring("keep it"));
}

}  // namespace
}  // namespace stratagem::report
