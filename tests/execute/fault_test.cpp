// What is not finite is found, by the task that made it; where a rank is can be told at any time.
#include <limits>
#include <string>
#include <vector>

#include "execute/finite.hpp"
#include "kernels/finite.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::fault_test {
namespace {

constexpr model::GptConfig tiny_gpt{
    .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

model::TensorId parameter_named(const model::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return static_cast<model::TensorId>(i);
  }
  throw std::out_of_range(name);
}

/// What every rank is told after a value of a parameter has been replaced before iteration `at`; ""
/// if it is not found by then.
std::vector<std::string> told(const std::string& strategy, const std::string& parameter,
                              double value, int at, bool finds) {
  const model::Graph given = model::gpt(tiny_gpt);
  const Planned plan = planned(given, strategy, 2);
  const model::Graph& graph = plan.plan.graph();
  const model::TensorId id = parameter_named(graph, parameter);
  const auto ranks = static_cast<int>(plan.program.devices.size());
  std::vector<std::string> result(static_cast<std::size_t>(ranks));
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    const Settings settings{.seed = 7, .micro_batches = 2, .finds_faults = finds};
    Interpreter<double> rank(plan.program, graph, settings, world);
    try {
      for (int i = 0; i <= at; ++i) {
        if (i == at) {
          try {
            rank.parameter(id).data[0] = value;
          } catch (const std::out_of_range&) {  // of another stage
          }
        }
        rank.iterate();
      }
    } catch (const NotFinite& fault) {
      result[static_cast<std::size_t>(world.rank())] = fault.what();
    }
  });
  return result;
}

const std::string scale = "layers.1.mlp_norm.scale";

TEST_CASE("a parameter that is no number is named, with rank, task, micro-batch and iteration") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const int at : {0, 2}) {
    const std::string iteration = std::to_string(at);
    const auto said = told("{}", scale, nan, at, true);
    CHECK_THAT(said[0], StartsWith("the loss of iteration " + iteration + " is "));
    CHECK_THAT(said[0],
               ContainsSubstring("since rank 0, at task mlp_norm of F layers.1, micro-batch 0"));
    CHECK_THAT(said[0], ContainsSubstring("iteration " + iteration));
    CHECK_THAT(said[0], ContainsSubstring("reading parameter " + scale));
  }
}

TEST_CASE("all ranks are told the same, of the rank where it arose") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto said = told(R"({"pipeline": 2, "schedule": "1f1b"})", scale, infinity, 1, true);
  REQUIRE(said.size() == 2);
  CHECK(said[0] == said[1]);
  CHECK_THAT(said[0], ContainsSubstring("since rank 1, at task mlp_norm of F layers.1"));
}

TEST_CASE("numbers that are too large are found where they are multiplied") {
  // A norm's rows have a variance of 1: some of its elements are above 1, and 1.7e308 times them.
  const auto said = told("{}", scale, 1.7e308, 0, true);
  CHECK_THAT(said[0], ContainsSubstring("since rank 0, at task mlp_norm of F layers.1"));
  CHECK(said[0].find("reading parameter") == std::string::npos);
}

TEST_CASE("without a look at every task the loss alone tells") {
  const auto said = told("{}", scale, std::numeric_limits<double>::quiet_NaN(), 0, false);
  CHECK_THAT(said[0], StartsWith("the loss of iteration 0 is "));
  CHECK(said[0].find("since") == std::string::npos);
}

TEST_CASE("finite is what is neither infinite nor no number, in both types") {
  const auto check = []<typename T>(T) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {0, -1, Limits::max(), Limits::lowest(), Limits::denorm_min()};
    CHECK(kernels::all_finite<T>(values));
    for (const T bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
      values.push_back(bad);
      CHECK_FALSE(kernels::all_finite<T>(values));
      values.pop_back();
    }
    CHECK(kernels::all_finite<T>(std::span<const T>{}));
  };
  check(float{});
  check(double{});
}

TEST_CASE("the current task is told until it is left") {
  CurrentTask current;
  current.during("the check");
  CHECK(current.text() == "between tasks of the check");
  const program::Block block{.name = "F layers.0"};
  const program::Task task{.name = "mlp.fc1"};
  const std::string segment = "layers.5";
  current.enter(block, &segment, task, 3, 1);
  CHECK(current.text() == "at task mlp.fc1 of F layers.5, micro-batch 3, iteration 1 of the check");
  current.enter(block, nullptr, task, -1, 1);
  CHECK(current.text() == "at task mlp.fc1 of F layers.0, iteration 1 of the check");
  current.leave();
  CHECK(current.text() == "between tasks of the check");
}

}  // namespace
}  // namespace stratagem::execute::fault_test
