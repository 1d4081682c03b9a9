// Heads that predict numbers: their parameters, and what their losses read.
#include "model/zoo/decoder_task.hpp"

#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model {
namespace {

LlamaConfig llama_of(Predicts predicts) {
  LlamaConfig config{.layers = 2,
                     .hidden = 48,
                     .heads = 8,
                     .kv_heads = 4,
                     .intermediate = 80,
                     .sequence = 20,
                     .vocabulary = 112,
                     .batch = 12};
  config.variant.task = {.predicts = predicts, .answers = 4};
  return config;
}

}  // namespace

TEST_CASE("a head of numbers has one column in place of a table of words") {
  const LlamaConfig words = llama_of(Predicts::words);
  for (const Predicts predicts : {Predicts::values, Predicts::reward}) {
    const Graph graph = llama(llama_of(predicts));
    CHECK(parameter_count(graph) == llama_parameters(words) - 112 * 48 + 48);
  }
}

TEST_CASE("a critic has a loss of every token, a reward model one of every prompt") {
  const Graph critic = llama(llama_of(Predicts::values));
  CHECK(critic.tensors[critic.loss].shape == std::vector<std::int64_t>{12, 20, 1});
  const Graph reward = llama(llama_of(Predicts::reward));
  CHECK(reward.tensors[reward.loss].shape == std::vector<std::int64_t>{3});
}

TEST_CASE("the backward pass of a head of numbers goes through every layer") {
  const LlamaConfig words = llama_of(Predicts::words);
  const auto layer_flops = [](const Graph& graph) {
    Flops sum;
    for (const Operator& op : graph.operators)
      if (op.segment == 1) sum += flops(graph, op);
    return sum;
  };
  for (const Predicts predicts : {Predicts::values, Predicts::reward}) {
    const Graph graph = llama(llama_of(predicts));
    CHECK(layer_flops(graph) == layer_flops(llama(words)));
    const double rows = predicts == Predicts::values ? 12 * 20 : 12;
    Flops head;
    for (const Operator& op : graph.operators)
      if (op.segment == 3) head += flops(graph, op);
    CHECK(head.value == 3 * 2 * rows * 48);  // forward, and two products back
  }
}

}  // namespace stratagem::model
