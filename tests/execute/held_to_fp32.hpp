// Plans of small models that ranks compute with some engine, held to one device in fp32.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "execute/agreement.hpp"
#include "model/zoo/llama.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute {

inline model::GptConfig small_gpt_config() {
  return {.layers = 2, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 48, .batch = 4};
}
inline const model::Graph& small_gpt() {
  static const model::Graph graph = model::gpt(small_gpt_config());
  return graph;
}

/// Two queries for each key; one projection for gate and factor; a loss that leaves its gradient.
inline model::LlamaConfig small_llama_config() {
  model::LlamaConfig config;
  config.layers = 2;
  config.hidden = 64;
  config.heads = 4;
  config.kv_heads = 2;
  config.intermediate = 96;
  config.sequence = 16;
  config.vocabulary = 48;
  config.batch = 4;
  config.fused.attention = false;
  config.fused.swiglu = config.fused.loss = true;
  return config;
}
inline const model::Graph& small_llama() {
  static const model::Graph graph = model::llama(small_llama_config());
  return graph;
}

/// The same two with fused attention.
inline const std::vector<model::Graph>& small_fused() {
  static const std::vector<model::Graph> graphs = [] {
    model::GptConfig gpt = small_gpt_config();
    model::LlamaConfig llama = small_llama_config();
    gpt.fused_attention = llama.fused.attention = true;
    return std::vector{model::gpt(gpt), model::llama(llama)};
  }();
  return graphs;
}
/// Heads by tensor rank, tokens by context rank, whose keys are those up to their last.
inline const std::vector<std::string> fused_strategies = {
    "{}", R"({"tensor": 2})", R"({"context": 2})", R"({"recompute": "full"})"};

/// Of ranks that compute with such engines, against one device in fp32.
template <typename T>
Agreement held_to_fp32(const model::Graph& graph, const std::string& strategy,
                       const MakeEngine<T>& make_engine) {
  const Planned plan = planned(graph, strategy, 2), alone = planned(graph, "{}", 2);
  REQUIRE(refusal(plan.program, plan.plan.graph(), Backend::cuda).empty());
  const Settings settings{.seed = 7, .micro_batches = 2};
  Agreement result;
  const auto ranks = static_cast<int>(plan.program.devices.size());
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    Agreement mine =
        compare<T>({plan.program, plan.plan.graph()}, {alone.program, alone.plan.graph()}, settings,
                   world, 3, make_engine);
    if (world.rank() == 0) result = std::move(mine);
  });
  return result;
}

inline const std::vector<std::string> small_strategies = {
    "{}",
    R"({"data": 2})",
    R"({"tensor": 2})",
    R"({"tensor": 2, "sequence_parallel": true})",
    R"({"pipeline": 2, "schedule": "1f1b"})",
    R"({"zero": 1, "data": 2})",
    R"({"zero": 3, "data": 2})",
    R"({"recompute": "full"})"};

}  // namespace stratagem::execute
