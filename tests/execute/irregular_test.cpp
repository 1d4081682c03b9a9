// Stages whose operators stand anywhere, in parts that are not equal, and tensors that are
// redistributed between grids, train as on one device.
#include <string>

#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "tests/lowering/irregular_plans.hpp"

namespace stratagem::execute::irregular_test {
namespace {

using strategies::Plan;

double error(const Plan& plan, const Trained& reference) {
  const program::Program program = lowering::lower(plan, lowering::plain_stack(), {});
  return distance(train<double>(plan.graph(), program, plan.micro_batches), reference);
}

/// Of a graph and a number of micro-batches.
const Trained& one_device(const model::Graph& graph, int micro_batches) {
  static std::map<std::pair<const model::Graph*, int>, Trained> known;
  const auto key = std::pair(&graph, micro_batches);
  if (!known.contains(key)) known.emplace(key, train<double>(planned(graph, "{}", micro_batches)));
  return known.at(key);
}

const model::Graph& tiny() {
  static const model::Graph graph = model::gpt(lowering::tiny_gpt);
  return graph;
}

const model::Graph& tied() {
  static const model::Graph graph = [] {
    model::GptConfig config = lowering::tiny_gpt;
    config.tied = true;
    return model::gpt(config);
  }();
  return graph;
}

TEST_CASE("plans of one grid train as on one device when their devices are listed one by one") {
  const std::string strategy =
      GENERATE(as<std::string>{}, R"({"tensor": 2})", R"({"tensor": 3})",
               R"({"tensor": 2, "recompute": "full"})", R"({"pipeline": 2, "schedule": "1f1b"})");
  CAPTURE(strategy);
  static const model::Graph even = model::gpt(
      {.layers = 2, .hidden = 12, .heads = 6, .sequence = 7, .vocabulary = 18, .batch = 2});
  const Plan plan = lowering::with_lists(lowering::plan_of(even, strategy, 2));
  CHECK(error(plan, one_device(even, 2)) <= 1e-9);
}

TEST_CASE("operators divided at random over devices at random train as on one device") {
  const auto seed = static_cast<unsigned>(GENERATE(range(1, 25)));
  CAPTURE(seed);
  const Plan plan = lowering::random_plan(tiny(), 4, seed);
  CHECK(error(plan, one_device(tiny(), 1)) <= 1e-9);
}

TEST_CASE("pipelines of stages divided at random train as on one device") {
  const auto seed = static_cast<unsigned>(GENERATE(range(1, 17)));
  CAPTURE(seed);
  const Plan plan = lowering::random_pipeline(tiny(), 4, seed);
  CHECK(error(plan, one_device(tiny(), 1)) <= 1e-9);
}

TEST_CASE("a vocabulary in unequal parts trains as on one device") {
  const int devices = GENERATE(2, 3, 5);
  CAPTURE(devices);
  CHECK(error(lowering::uneven_words(tiny(), devices), one_device(tiny(), 1)) <= 1e-9);
  CHECK(error(lowering::uneven_words(tied(), devices), one_device(tied(), 1)) <= 1e-9);
}

}  // namespace
}  // namespace stratagem::execute::irregular_test
