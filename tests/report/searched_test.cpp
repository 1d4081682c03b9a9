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
