// What a framework keeps of the outputs of passes that are over.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::kept_outputs_test {
namespace {

/// Bytes of each buffer that a sequence keeps among its activations.
std::vector<Bytes> kept(const std::string& strategy, int micro_batches, int sequence, int passes) {
  cost::Stack stack = plain_stack();
  stack.rules = {cost::KeptOutputs{.of = "exponential", .passes = passes}};
  const model::Graph graph = model::gpt(small_gpt);
  const program::Program program = lower(plan_of(graph, strategy, micro_batches), stack);
  std::vector<Bytes> buffers;
  for (const program::Resident& resident : program.sequences.at(sequence).residents) {
    if (resident.category == program::Category::activations) buffers.push_back(resident.bytes);
  }
  return buffers;
}

/// Of a micro-batch, in fp32.
Bytes exponentials(double shards) {
  return Bytes{4.0 * small_gpt.batch * small_gpt.sequence * small_gpt.vocabulary / shards};
}

}  // namespace

TEST_CASE(
    "the stage with the loss keeps what as many forward passes have written, others nothing") {
  const std::string pipeline = R"({"pipeline": 2, "schedule": "1f1b"})";
  CHECK(kept(pipeline, 4, 1, 2) == std::vector{exponentials(1), exponentials(1)});
  CHECK(kept(pipeline, 4, 1, 3).size() == 3);
  CHECK(kept(pipeline, 1, 1, 2) == std::vector{exponentials(1)});  // there was no other
  CHECK(kept(pipeline, 4, 0, 2).empty());
  CHECK(kept(pipeline, 4, 1, 0).empty());
}

TEST_CASE(
    "a stack's buffers are as large as the largest result of their kind, on ranks that run it") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto buffers = [&](const std::string& kind, const std::string& strategy, int sequence) {
    cost::Stack stack = plain_stack();
    stack.rules = {cost::OperatorKernels{.of = kind, .kept_buffers = 2}};
    std::vector<Bytes> sizes;
    const program::Program program = lower(plan_of(graph, strategy, 4), stack);
    for (const program::Resident& resident : program.sequences.at(sequence).residents) {
      if (resident.category == program::Category::temporaries) sizes.push_back(resident.bytes);
    }
    return sizes;
  };
  // Scores in two bytes of every head and pair of tokens, whatever the number of layers.
  const double pairs = 1.0 * small_gpt.sequence * small_gpt.sequence;
  const Bytes scores{2.0 * small_gpt.batch * small_gpt.heads * pairs};
  CHECK(buffers("masked_softmax", "{}", 0) == std::vector{scores, scores});
  CHECK(buffers("masked_softmax", R"({"tensor": 2})", 0) == std::vector{scores / 2, scores / 2});
  const std::string pipeline = R"({"pipeline": 2, "schedule": "1f1b"})";
  CHECK(buffers("exponential", pipeline, 0).empty());
  CHECK(buffers("exponential", pipeline, 1) == std::vector{exponentials(1), exponentials(1)});
}

TEST_CASE("stages keep what they received last, and its gradient, if the stack says so") {
  cost::Stack stack = plain_stack();
  const model::Graph graph = model::gpt(small_gpt);
  const auto buffers = [&](const std::string& strategy, int sequence) {
    std::vector<Bytes> sizes;
    const program::Program program = lower(plan_of(graph, strategy, 4), stack);
    for (const program::Resident& resident : program.sequences.at(sequence).residents) {
      if (resident.category == program::Category::activations) sizes.push_back(resident.bytes);
    }
    return sizes;
  };
  const std::string pipeline = R"({"pipeline": 2, "schedule": "1f1b"})";
  CHECK(buffers(pipeline, 1).empty());
  stack.rules.emplace_back(cost::Lifetime::received_until_next);
  const Bytes states{2.0 * small_gpt.batch * small_gpt.sequence * small_gpt.hidden};
  CHECK(buffers(pipeline, 0).empty());  // the first stage receives nothing
  CHECK(buffers(pipeline, 1) == std::vector(2, states));
  CHECK(buffers("{}", 0).empty());
  // Of two stages on the first rank one receives, on the last both do.
  const std::string chunks = R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})";
  CHECK(buffers(chunks, 0) == std::vector(2, states));
  CHECK(buffers(chunks, 1) == std::vector(4, states));
}

TEST_CASE("of a micro-batch whose tokens come in slices all are kept") {
  const std::vector<Bytes> slices =
      kept(R"({"pipeline": 2, "schedule": "1f1b", "token_slices": [10, 6, 4]})", 3, 1, 2);
  CHECK(slices == std::vector{exponentials(1), exponentials(1)});
}

TEST_CASE("ranks keep their own part of it, also without a pipeline") {
  CHECK(kept(R"({"tensor": 4})", 3, 0, 2) == std::vector{exponentials(4), exponentials(4)});
  CHECK(kept(R"({"data": 3})", 3, 0, 2) == std::vector{exponentials(3), exponentials(3)});
}

}  // namespace stratagem::lowering::kept_outputs_test
