// Rules of residency: what two of them say together, and what none can say.
#include "strategies/plan/keep.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::strategies::keep_test {

using What = Keep::What;
using Where = Keep::Where;

std::string refused_at(const std::vector<Keep>& rules) {
  Residency residency;
  try {
    for (const Keep& rule : rules) residency.keep(rule);
  } catch (const InputError& error) {
    return error.path;
  }
  return "";
}

TEST_CASE("a division and a place of the same parameters are one rule") {
  Residency residency;
  residency.keep({.what = What::parameters, .divided = {"data"}, .ahead = 2, .at_least = 0});
  residency.keep({.what = What::parameters, .where = Where::host, .ahead = 2});
  REQUIRE(residency.rules().size() == 1);
  const Keep& rule = *residency.of(What::parameters);
  CHECK(rule.divided == std::vector<std::string>{"data"});
  CHECK(rule.where == Where::host);
  CHECK(rule.ahead == 2);
  CHECK(residency.of(What::gradients) == nullptr);
}

TEST_CASE("rules that contradict each other are refused at what they disagree about") {
  CHECK(refused_at({{.what = What::parameters, .where = Where::host},
                    {.what = What::parameters, .where = Where::drives}}) == "/where");
  CHECK(refused_at({{.what = What::parameters, .ahead = 1},
                    {.what = What::parameters, .ahead = 2}}) == "/ahead");
  CHECK(refused_at({{.what = What::gradients, .divided = {"data"}},
                    {.what = What::gradients, .divided = {"context"}}}) == "/divided");
  CHECK(refused_at({{.what = What::parameters, .between = Keep::Between::iterations},
                    {.what = What::parameters, .where = Where::host}}) == "/between");
}

TEST_CASE("parameters have a rule for each gap, which holds in longer ones without their own") {
  using Between = Keep::Between;
  Residency residency;
  residency.keep({.what = What::parameters, .divided = {"data"}, .ahead = 1});
  CHECK(residency.of(What::parameters, Between::iterations)->divided.size() == 1);
  residency.keep(
      {.what = What::parameters, .between = Between::micro_batches, .divided = {"data", "group"}});
  REQUIRE(residency.rules().size() == 2);
  CHECK(residency.of(What::parameters, Between::passes)->divided.size() == 1);
  CHECK(residency.of(What::parameters)->divided.size() == 2);
  Residency whole;
  whole.keep({.what = What::parameters, .between = Between::micro_batches, .divided = {"data"}});
  CHECK(whole.of(What::parameters, Between::passes) == nullptr);
  const Keep all{.what = What::parameters, .between = Between::micro_batches, .divided = {"data"}};
  CHECK(refused_at({all, {.what = What::parameters, .ahead = 1}}) == "/divided");
  CHECK(refused_at({all, {.what = What::parameters, .where = Where::host}}) == "/divided");
  CHECK(refused_at({{.what = What::parameters, .between = Between::micro_batches, .ahead = 2},
                    {.what = What::parameters, .divided = {"data"}, .ahead = 1}}) == "/ahead");
  CHECK(refused_at(
            {{.what = What::gradients, .between = Between::micro_batches, .divided = {"data"}}}) ==
        "/between");
}

TEST_CASE("each subject has the places, parts and windows that it can have") {
  CHECK(refused_at({{.what = What::gradients, .where = Where::host}}) == "/where");
  CHECK(refused_at({{.what = What::gradients, .where = Where::drives}}).empty());
  CHECK(refused_at({{.what = What::gradients}}) == "/divided");
  CHECK(refused_at({{.what = What::checkpoints}}) == "/divided");
  CHECK(refused_at({{.what = What::states, .where = Where::host}}) == "/where");
  CHECK(refused_at({{.what = What::states, .where = Where::drives}}).empty());
  CHECK(refused_at({{.what = What::states, .where = Where::drives, .divided = {"data"}}}) ==
        "/divided");
  CHECK(refused_at({{.what = What::gradients, .divided = {"data"}, .ahead = 1}}) == "/ahead");
  CHECK(refused_at({{.what = What::gradients, .divided = {"data"}, .at_least = 5}}) == "/at least");
  CHECK(refused_at({{.what = What::gradients, .between = Keep::Between::iterations}}) ==
        "/between");
  CHECK(refused_at({{.what = What::parameters, .segments = {1}}}) == "/of");
}

TEST_CASE("every segment and every cell has one rule, and all segments one window") {
  const Keep first{.what = What::activations, .segments = {1, 2}, .where = Where::host, .ahead = 1};
  Keep other{
      .what = What::activations, .segments = {3}, .where = Where::stage, .stage = 2, .ahead = 1};
  Residency residency;
  residency.keep(first);
  residency.keep(other);
  CHECK(residency.of_segment(2)->where == Where::host);
  CHECK(residency.of_segment(3)->stage == 2);
  CHECK(residency.of_segment(0) == nullptr);
  CHECK(residency.of_cell(3, 0) == nullptr);
  CHECK(refused_at({first, other, other}) == "/of");
  other.ahead = 0;
  CHECK(refused_at({first, other}) == "/ahead");
  const Keep cells{.what = What::activations, .cells = {{0, 3}}, .where = Where::stage, .stage = 1};
  CHECK(refused_at({cells, cells}) == "/cells");
  CHECK(refused_at({{.what = What::activations, .where = Where::host}}) == "/of");
  CHECK(refused_at({{.what = What::activations, .cells = {{0, 3}}, .where = Where::host}}) ==
        "/where");
}

}  // namespace stratagem::strategies::keep_test
