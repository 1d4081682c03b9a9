// Memory of an execution, against what can be counted by hand.
#include "execute/memory_need.hpp"

#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::execute::memory_need_test {
namespace {

constexpr model::GptConfig small_gpt{
    .layers = 4, .hidden = 32, .heads = 4, .sequence = 8, .vocabulary = 64, .batch = 2};

Bytes need(const std::string& strategy, int micro_batches,
           const ElementSizes& sizes = sizes_of<float>()) {
  const model::Graph given = model::gpt(small_gpt);
  const Planned plan = planned(given, strategy, micro_batches);
  return memory_need(plan.program, plan.plan.graph(), 0, sizes).iteration;
}

const double parameters = static_cast<double>(model::gpt_parameters(small_gpt));

TEST_CASE("what is stepped is all parameters once, on one device or shared out by ZeRO") {
  const auto gradients = [](const std::string& strategy, int device) {
    const model::Graph given = model::gpt(small_gpt);
    const Planned plan = planned(given, strategy, 2);
    return memory_need(plan.program, plan.plan.graph(), device, sizes_of<double>()).gradients.value;
  };
  CHECK(gradients("{}", 0) == 8 * parameters);
  const std::string zero = R"({"data": 2, "zero": 1})";
  CHECK(gradients(zero, 0) + gradients(zero, 1) == 8 * parameters);
}

TEST_CASE("one device holds parameters, gradients and two moments, and activations beside") {
  // Layers keep at least what they multiply: inputs of 4 products (h, h, h, 4h) of b s = 16 tokens.
  const double kept = 4.0 * 16 * 7 * 32;
  CHECK(need("{}", 1).value > 4 * (3 * parameters + kept));
  // Values of a layer, forward and backward, are below 100 b s h; logits and scores below 40.
  CHECK(need("{}", 1).value < 4 * (4 * parameters + 16 * 32 * (4 * 100 + 40)));
  CHECK(need("{}", 1, sizes_of<double>()) > 1.8 * need("{}", 1));  // but bytes of masks
}

TEST_CASE("micro-batches on one device take turns, those of a pipeline's first stage do not") {
  CHECK(need("{}", 8) == need("{}", 2));
  const std::string gpipe = R"({"pipeline": 2, "schedule": "gpipe"})";
  CHECK(need(gpipe, 8) > need(gpipe, 2));
}

TEST_CASE("ranks that share out parameters need less") {
  CHECK(need(R"({"data": 2, "zero": 3})", 2) < need(R"({"data": 2})", 2));
  CHECK(need(R"({"recompute": "full"})", 2) < need("{}", 2));
}

}  // namespace
}  // namespace stratagem::execute::memory_need_test
