// Plans compute what one device computes.
#include <string>

#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute {
namespace {


constexpr model::GptConfig tiny_gpt{
    .layers = 4, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

TEST_CASE("a plan of GPT trains as one device does") {
  const std::string strategy = GENERATE(
      as<std::string>{}, R"({"data": 2})", R"({"data": 4})", R"({"tensor": 2})", R"({"tensor": 4})",
      R"({"tensor": 2, "sequence_parallel": true})", R"({"tensor": 2, "data": 2})",
      R"({"recompute": "full"})", R"({"recompute": "selective"})",
      R"({"tensor": 2, "recompute": "full"})", R"({"zero": 1, "data": 2})",
      R"({"zero": 2, "data": 2})", R"({"zero": 3, "data": 2})", R"({"zero": 1, "data": 4})",
      R"({"zero": 2, "data": 4})", R"({"zero": 3, "data": 4})",
      R"({"zero": 3, "data": 2, "tensor": 2})", R"({"pipeline": 2, "schedule": "gpipe"})",
      R"({"pipeline": 2, "schedule": "1f1b"})", R"({"pipeline": 4, "schedule": "1f1b"})",
      R"({"pipeline": 2, "schedule": "zb-h1"})",
      R"({"pipeline": 2, "data": 2, "tensor": 2, "schedule": "1f1b"})");
  CAPTURE(strategy);
  const model::Graph graph = model::gpt(tiny_gpt);
  const int micro_batches = 4;
  static const Trained reference =
      train<double>(planned(graph, "{}", micro_batches));
  const Trained trained =
      train<double>(planned(graph, strategy, micro_batches));
  CHECK(distance(trained, reference) <= 1e-9);
}

}  // namespace
}  // namespace stratagem::execute
