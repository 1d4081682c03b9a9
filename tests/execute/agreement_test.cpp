// Plans compute what one device computes: gradients of the first iteration and losses of three.
#include "tests/execute/agreement.hpp"

#include <array>
#include <string>

#include "model/adapters.hpp"
#include "model/zoo/llama.hpp"
#include "program/program_text.hpp"
#include "tests/catch.hpp"

namespace stratagem::execute::agreement_test {
namespace {

model::GptConfig tiny() {
  return {.layers = 4, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};
}

const model::Graph& tiny_gpt() {
  static const model::Graph graph = model::gpt(tiny());
  return graph;
}

/// Without tied embeddings, whose ends then have nothing to do with each other.
const model::Graph& untied_gpt() {
  static const model::Graph graph = [] {
    model::GptConfig config = tiny();
    config.tied = false;
    return model::gpt(config);
  }();
  return graph;
}

/// Keys and values for every query, or for two of them each; MLPs of a projection for each of gate
/// and factor, or of one for both; a loss in parts, or one that leaves its gradient.
const model::Graph& tiny_llama(bool shared_keys) {
  const auto build = [](std::int64_t kv_heads) {
    model::LlamaConfig config;
    config.layers = 4;
    config.hidden = 16;
    config.heads = 4;
    config.kv_heads = kv_heads;
    config.intermediate = 24;
    config.sequence = 8;
    config.vocabulary = 24;
    config.batch = 4;
    config.fused.attention = false;
    config.fused.swiglu = config.fused.loss = kv_heads < config.heads;
    return model::llama(config);
  };
  static const model::Graph own = build(4), shared = build(2);
  return shared_keys ? shared : own;
}

/// Three trained keys and values before the tokens' in each layer, all else frozen.
const model::Graph& prefix_tuned_gpt() {
  static const model::Graph graph = [] {
    model::GptConfig config = tiny();
    config.prefix = 3;
    return model::gpt(config);
  }();
  return graph;
}

const model::Graph& prefix_tuned_llama() {
  static const model::Graph graph = [] {
    model::LlamaConfig config{4, 16, 4, 2, 24, 8, 24, 4};
    config.fused.attention = false;
    config.prefix = 3;
    return model::llama(config);
  }();
  return graph;
}

/// A GPT with norms of queries and keys: each query has a key of its own, or two share one.
const model::Graph& tiny_variant(bool shared_keys) {
  const auto build = [](bool is_shared) {
    model::GptConfig config = tiny();
    config.activation = model::OpKind::squared_relu;
    config.fused_attention = is_shared;
    config.variant = {.positions = model::Positions::rotary,
                      .biases = !is_shared,
                      .kv_heads = is_shared ? 2 : 0,
                      .qk_norm = true};
    return model::gpt(config);
  };
  static const model::Graph own = build(false), shared = build(true);
  return shared_keys ? shared : own;
}

/// Four experts, two for every token: in each layer of a Llama, fused or in parts, or in every
/// second one of a GPT, whose experts have biases and too few slots.
enum class Mixture : std::uint8_t { llama, llama_in_parts, gpt };
const model::Graph& tiny_mixture(Mixture mixture) {
  const auto llama = [](bool fused) {
    model::LlamaConfig config{4, 16, 4, 2, 24, 8, 24, 4};
    config.fused.attention = false;
    config.fused.swiglu = fused;
    config.experts = {.count = 4, .per_token = 2, .capacity_factor = fused ? 1.5 : 1};
    return model::llama(config);
  };
  const auto gpt = [] {
    model::GptConfig config = tiny();
    config.experts = {.count = 4, .per_token = 2, .capacity_factor = 0.75, .every = 2};
    return model::gpt(config);
  };
  static const std::array graphs = {llama(true), llama(false), gpt()};
  return graphs[static_cast<std::size_t>(mixture)];
}

TEST_CASE("GPT under every kind of parallelism trains as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"data": 4})", R"({"tensor": 2})",
               R"({"tensor": 4})", R"({"tensor": 2, "sequence_parallel": true})",
               R"({"tensor": 2, "data": 2})", R"({"context": 2})", R"({"context": 2, "tensor": 2})",
               R"({"context": 4})", R"({"ulysses": 2})", R"({"ulysses": 2, "context": 2})",
               R"({"ulysses": 2, "tensor": 2, "sequence_parallel": true})",
               R"({"data": 2, "overlap_gradients": true, "bucket": "1 KB"})"));
}

TEST_CASE("a GPT with norms of queries and keys trains as on one device, whoever divides heads") {
  const std::string strategy =
      GENERATE(as<std::string>{}, R"({"tensor": 2})", R"({"data": 2, "tensor": 2})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
               R"({"pipeline": 2, "tensor": 2, "zero": 1, "data": 2})");
  check_agreement(tiny_variant(false), strategy);
  check_agreement(tiny_variant(true), strategy);
}

TEST_CASE("GPT with less memory trains as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(as<std::string>{}, R"({"recompute": "full"})", R"({"recompute": "selective"})",
               R"({"recompute": {"every": 2}})", R"({"tensor": 2, "recompute": "full"})",
               R"({"tensor": 2, "sequence_parallel": true, "recompute": "selective"})",
               R"({"tensor": 2, "recompute": "full", "partition_checkpoints": true})",
               R"({"coshard": {"attention": 2, "mlp": 4}})",
               R"({"coshard": {"attention": 2, "mlp": 2}, "tensor": 2})",
               R"({"coshard": 2, "recompute": "full"})",
               R"({"pipeline": 2, "schedule": "zb-h1", "recompute": {"results": "dropped",
                   "operators": ["layers.*.mlp.fc1*", "layers.*.mlp.gelu"]}})",
               R"({"pipeline": 2, "schedule": "zb-h1", "tensor": 2, "recompute": {
                   "operators": ["layers.*_norm", "layers.*.mlp.fc1*", "layers.*.mlp.gelu"],
                   "results": "dropped"}})",
               R"({"coshard": 2, "coshard_layers": 3, "recompute": {"every": 2}, "tensor": 2})",
               R"({"coshard": 2, "recompute": "full", "pipeline": 2, "schedule": "zb-h1"})",
               R"({"coshard": 2, "recompute": {"operators": ["layers.*_norm"],
                                               "results": "dropped"}})",
               R"({"coshard": 2, "pipeline": 2, "schedule": "zb-h1", "zero": 3, "data": 2,
                   "recompute": {"operators": ["layers.*_norm"], "results": "dropped"}})",
               R"({"zero": 1, "data": 2})", R"({"zero": 2, "data": 2})",
               R"({"zero": 3, "data": 2})", R"({"zero": 1, "data": 4})",
               R"({"zero": 2, "data": 4})", R"({"zero": 3, "data": 4})",
               R"({"zero": 3, "data": 2, "tensor": 2})",
               R"({"zero": {"stage": 3, "whole_below": 1000}, "data": 4})",
               R"({"zero": 1, "data": 2, "tensor": 2, "sequence_parallel": true})",
               R"({"zero": 2, "data": 2, "tensor": 2, "sequence_parallel": true})",
               R"({"zero": 3, "data": 2, "tensor": 2, "sequence_parallel": true})",
               R"({"zero": 3, "context": 2, "tensor": 2, "sequence_parallel": true})",
               R"({"zero": {"stage": 1, "ranks": 2}, "data": 4})",
               R"({"zero": {"stage": 2, "ranks": 2}, "data": 4})",
               R"({"zero": {"stage": 3, "ranks": 2}, "data": 4})",
               R"({"zero": {"stage": 3, "reshard_after_forward": false}, "data": 4})",
               R"({"zero": {"stage": 3, "reshard_after_forward": false, "prefetch": 3,
                            "whole_below": 100}, "data": 2, "tensor": 2, "recompute": "full"})",
               R"({"zero": {"stage": 3, "reshard_after_forward": 2}, "data": 4})",
               R"({"zero": {"stage": 3, "reshard_after_forward": 2, "prefetch": 0}, "data": 4,
                   "recompute": {"every": 2}})",
               R"({"zero": {"stage": 1, "prefetch": 1}, "data": 4})",
               R"({"zero": {"stage": 2, "prefetch": 0}, "data": 2, "tensor": 2})",
               R"({"zero": {"stage": 1, "prefetch": 2}, "data": 2, "offload": "optimizer"})",
               R"({"zero": 1, "data": 2, "offload": "optimizer"})",
               R"({"zero": 2, "data": 2, "offload": "optimizer"})"));
}

TEST_CASE("GPT in a pipeline trains as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(
          as<std::string>{}, R"({"pipeline": 2, "schedule": "gpipe"})",
          R"({"pipeline": 2, "schedule": "1f1b"})", R"({"pipeline": 4, "schedule": "1f1b"})",
          R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})",
          R"({"pipeline": 2, "schedule": "zb-h1"})", R"({"pipeline": 2, "schedule": "zb-h2"})",
          R"({"pipeline": 2, "schedule": "zb-v"})", R"({"pipeline": 2, "schedule": "v-half"})",
          R"({"pipeline": 2, "schedule": "chimera"})", R"({"pipeline": 4, "schedule": "chimera"})",
          R"({"pipeline": 2, "schedule": "dualpipe"})", R"({"pipeline": 2, "schedule": "hanayo"})",
          R"({"pipeline": 2, "schedule": "1f1b", "recompute": "full"})",
          R"({"pipeline": 2, "schedule": "zb-h1", "recompute": "full"})",
          R"({"pipeline": 2, "schedule": "1f1b", "zero": 1, "data": 2})",
          R"({"pipeline": 2, "schedule": "1f1b", "zero": {"stage": 1, "prefetch": 1}, "data": 2})",
          R"({"pipeline": 2, "schedule": "gpipe", "zero": 2, "data": 2})",
          R"({"pipeline": 2, "schedule": "gpipe", "zero": 3, "data": 2})",
          R"({"pipeline": 2, "data": 2, "tensor": 2, "schedule": "1f1b"})"));
}

TEST_CASE("what other stages hold of activations is used as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(
          as<std::string>{}, R"({"pipeline": 4, "schedule": "bpipe"})",
          R"({"pipeline": 4, "schedule": "bpipe", "tensor": 2})",
          R"({"pipeline": 4, "schedule": "bpipe", "data": 2, "zero": 1})",
          R"({"pipeline": 2, "swap": {"layers": 2, "to": "peer"}})",
          R"({"pipeline": 2, "tensor": 2, "swap": {"layers": 2, "to": "peer", "prefetch": 0}})",
          R"({"pipeline": 2, "data": 2, "zero": 1, "swap": {"layers": 4, "to": "peer"}})",
          R"({"pipeline": 2, "recompute": "full", "swap": {"layers": 2, "to": "peer"}})",
          R"({"pipeline": 4, "schedule": "gpipe", "swap": {"layers": 3, "to": "peer"}})"));
}

TEST_CASE("cells that run together and communicate in turns train as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(as<std::string>{}, R"({"pipeline": 2, "schedule": "dualpipe", "tensor": 2})",
               R"({"pipeline": 2, "schedule": "dualpipe-v", "tensor": 2})",
               R"({"pipeline": 2, "schedule": "dualpipe", "tensor": 2, "sequence_parallel": true})",
               R"({"pipeline": 2, "schedule": "dualpipe", "tensor": 2, "recompute": "full"})",
               R"({"pipeline": 2, "schedule": "dualpipe", "data": 2, "zero": 1})",
               R"({"pipeline": 2, "schedule": "dualpipe", "data": 2, "zero": 3})",
               R"({"pipeline": 2, "schedule": "dualpipe", "data": 2, "overlap_gradients": true})"));
}

TEST_CASE("GPT on stages of unequal grids trains as on one device") {
  check_agreement(
      tiny_gpt(),
      GENERATE(as<std::string>{},
               R"({"pipeline": 2, "schedule": "1f1b", "embedding": "all", "head": "all"})",
               R"({"pipeline": 4, "schedule": "gpipe", "embedding": "all", "head": "all"})",
               R"({"pipeline": 2, "schedule": "1f1b", "replicas_per_stage": [2, 1]})",
               R"({"pipeline": 2, "schedule": "1f1b", "replicas_per_stage": [1, 2]})"));
}

TEST_CASE("interlaced pipelines train as on one device") {
  const std::string strategy =
      GENERATE(as<std::string>{}, R"({"pipeline": 2, "schedule": "interlaced"})",
               R"({"pipeline": 4, "schedule": "interlaced"})",
               R"({"pipeline": 4, "schedule": "interlaced", "recompute": "full"})",
               R"({"pipeline": 2, "schedule": "interlaced", "tensor": 2})",
               R"({"pipeline": 2, "schedule": "interlaced", "data": 2})",
               R"({"pipeline": 2, "schedule": "interlaced", "data": 2, "zero": 1})",
               R"({"pipeline": 2, "schedule": "interlaced", "data": 2, "zero": 3})");
  check_agreement(GENERATE(true, false) ? tiny_gpt() : untied_gpt(), strategy);
}

/// A GPT, or a Llama whose queries share keys in pairs; with heads of a few elements each.
const model::Graph& fused(bool llama) {
  static const model::Graph gpt = [] {
    model::GptConfig config = tiny();
    config.fused_attention = true;
    return model::gpt(config);
  }();
  static const model::Graph shared = [] {
    model::LlamaConfig config{4, 16, 4, 2, 24, 8, 24, 4};
    config.fused.attention = true;
    return model::llama(config);
  }();
  return llama ? shared : gpt;
}

TEST_CASE("models with fused attention train as on one device") {
  const bool llama = GENERATE(false, true);
  CAPTURE(llama);
  check_agreement(
      fused(llama),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
               R"({"context": 4})", R"({"ulysses": 2, "data": 2, "zero": 3})",
               R"({"pipeline": 2, "schedule": "1f1b"})",
               R"({"pipeline": 2, "schedule": "zb-h1", "tensor": 2})", R"({"recompute": "full"})",
               R"({"recompute": "selective"})", R"({"zero": 3, "data": 2})",
               R"({"coshard": {"attention": 2, "mlp": 2}})"));
}

/// The losses of two iterations on one device, from weights that are told apart by their names.
std::vector<double> losses_of(const model::Graph& graph) {
  const Planned plan = planned(graph, "{}", 2);
  const auto alone = kernels::lone();
  Interpreter<double> rank(plan.program, plan.plan.graph(), {.micro_batches = 2}, *alone);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    if (tensor.role != model::Role::parameter) continue;
    const std::uint64_t name = std::hash<std::string>()(tensor.name);
    const Elements<double>& values = rank.parameter(static_cast<model::TensorId>(id)).data;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.3 * std::sin(static_cast<double>(name % 1000 + 7 * i));
  }
  return rank.train(2);
}

/// The kernel keeps no scores, and adds up in another order.
TEST_CASE("fused attention computes what attention in parts computes") {
  model::GptConfig config = tiny();
  config.dropout = false;
  const std::vector<double> reference = losses_of(model::gpt(config));
  config.fused_attention = true;
  CHECK(distance(losses_of(model::gpt(config)), reference) <= 1e-9);
  model::LlamaConfig llama{4, 16, 4, 2, 24, 8, 24, 4};
  llama.fused.attention = false;
  const std::vector<double> of_llama = losses_of(model::llama(llama));
  llama.fused.attention = true;
  CHECK(distance(losses_of(model::llama(llama)), of_llama) <= 1e-9);
  llama.variant.repeats_keys = true;
  CHECK(distance(losses_of(model::llama(llama)), of_llama) <= 1e-9);
}

TEST_CASE("an untied GPT trains as on one device") {
  check_agreement(untied_gpt(),
                  GENERATE(as<std::string>{}, R"({"pipeline": 4, "schedule": "1f1b"})",
                           R"({"data": 2, "tensor": 2})"));
}

TEST_CASE("Llama trains as on one device") {
  const bool shared_keys = GENERATE(false, true);
  check_agreement(tiny_llama(shared_keys),
                  GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
                           R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
                           R"({"pipeline": 2, "schedule": "1f1b"})", R"({"zero": 3, "data": 2})",
                           R"({"recompute": "full"})"));
}

TEST_CASE("mixtures of experts train as on one device") {
  const model::Graph& graph =
      tiny_mixture(GENERATE(Mixture::llama, Mixture::llama_in_parts, Mixture::gpt));
  CAPTURE(graph.name);
  check_agreement(
      graph,
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"data": 2, "expert": 2})",
               R"({"data": 4, "expert": 2})", R"({"data": 4, "expert": 4})", R"({"tensor": 2})",
               R"({"tensor": 2, "sequence_parallel": true})",
               R"({"data": 2, "expert": 2, "tensor": 2})", R"({"zero": 3, "data": 2})",
               R"({"zero": 1, "data": 4, "expert": 2})", R"({"zero": 3, "data": 4, "expert": 2})",
               R"({"recompute": "full"})", R"({"data": 2, "expert": 2, "recompute": "full"})",
               R"({"data": 2, "expert": 2, "pipeline": 2, "schedule": "zb-h1"})",
               R"({"data": 2, "expert": 2, "pipeline": 2, "schedule": "dualpipe"})",
               R"({"data": 2, "expert": 2, "pipeline": 2, "schedule": "dualpipe-v"})",
               R"({"data": 2, "expert": 2, "schedule": "combined-1f1b", "chunks": 1})",
               R"({"data": 2, "expert": 2, "pipeline": 2, "schedule": "combined-1f1b"})"));
}

/// Adapters beside all matrices of the layers, or those of queries, keys and values alone.
const model::Graph& adapted(bool llama) {
  static const model::Graph of_gpt = model::with_adapters(
      model::gpt(tiny()), 2,
      [](const model::Tensor& weight) { return weight.name.starts_with("layers."); });
  static const model::Graph of_llama = model::with_adapters(
      tiny_llama(true), 4,
      [](const model::Tensor& weight) { return weight.name.ends_with("attention.qkv.weight"); });
  return llama ? of_llama : of_gpt;
}

TEST_CASE("adapters of a frozen GPT and a frozen Llama train as on one device") {
  check_agreement(
      adapted(GENERATE(false, true)),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
               R"({"recompute": "full"})", R"({"zero": 1, "data": 2})", R"({"zero": 3, "data": 2})",
               R"({"pipeline": 2, "schedule": "1f1b", "tensor": 2})",
               R"({"pipeline": 4, "schedule": "zb-h1"})"));
}

TEST_CASE("prefixes of a frozen GPT train as on one device") {
  check_agreement(
      prefix_tuned_gpt(),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"context": 2})",
               R"({"ulysses": 2})", R"({"data": 2, "tensor": 2})",
               R"({"pipeline": 2, "schedule": "gpipe"})", R"({"pipeline": 2, "schedule": "1f1b"})",
               R"({"pipeline": 2, "schedule": "zb-h1"})", R"({"zero": 1, "data": 2})",
               R"({"zero": 2, "data": 2})", R"({"zero": 3, "data": 2})", R"({"recompute": "full"})",
               R"({"recompute": "selective"})", R"({"coshard": {"attention": 2, "mlp": 2}})"));
}

TEST_CASE("prefixes of a frozen Llama train as on one device") {
  check_agreement(prefix_tuned_llama(),
                  GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
                           R"({"pipeline": 2, "schedule": "1f1b"})", R"({"recompute": "full"})"));
}

TEST_CASE("what waits on the host or its drives is there when it is used") {
  check_agreement(
      untied_gpt(),
      GENERATE(
          as<std::string>{}, R"({"swap": 2})",
          R"({"swap": {"layers": 4, "prefetch": 2}, "data": 2})",
          R"({"swap": 3, "pipeline": 2, "schedule": "zb-h1"})",
          R"({"swap": 4, "recompute": "full", "tensor": 2, "partition_checkpoints": true})",
          R"({"swap": {"layers": 4, "to": "drives", "prefetch": 1}})",
          R"({"recompute": {"every": 2}, "tensor": 2, "partition_checkpoints": true,
              "cpu_checkpointing": true})",
          R"({"offload": {"optimizer": "drives"}})", R"({"zero": 3, "offload": "parameters"})",
          R"({"offload": {"optimizer": "memory", "gradients": "drives"}})",
          R"({"zero": 2, "data": 2, "bucket": "2 KB",
              "offload": {"optimizer": "drives", "gradients": "drives"}})",
          R"({"zero": {"stage": 3, "reshard_after_forward": false}, "data": 2,
              "offload": {"optimizer": "drives", "parameters": "drives", "gradients": "drives"}})",
          R"({"zero": {"stage": 3, "reshard_after_forward": 2}, "offload": "parameters",
              "data": 4})",
          R"({"zero": 3, "offload": "parameters", "data": 4})",
          R"({"zero": 3, "offload": {"optimizer": "drives", "parameters": "drives"}, "data": 2})",
          R"({"zero": 3, "offload": {"optimizer": "memory", "parameters": "drives"}, "tensor": 2,
              "data": 2, "pipeline": 2})"));
}

TEST_CASE("parts of parts: steps over more axes than parameters and gradients") {
  const Trained reference = train<double>(planned(tiny_gpt(), "{}", micro_batches));
  for (const bool before_first_use : {false, true}) {
    strategies::Plan plan = lowering::plan_of(
        tiny_gpt(), R"({"data": 4, "zero": {"stage": 3, "ranks": 2}})", micro_batches);
    plan.steps.divided = {"replica", "data"};
    if (before_first_use) {
      plan.residency.keep({.what = strategies::Keep::What::parameters,
                           .between = strategies::Keep::Between::iterations,
                           .divided = {"replica", "data"}});
    }
    const program::Program program = lowering::lower(plan, lowering::plain_stack(), {});
    CHECK(distance(train<double>(plan.graph(), program, micro_batches), reference) <= 1e-9);
  }
}

TEST_CASE("in fp32 gradients agree as far as its digits go") {
  const std::string strategy =
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})",
               R"({"pipeline": 2, "schedule": "1f1b"})", R"({"zero": 3, "data": 2})");
  CAPTURE(strategy);
  const Trained reference = train<float>(planned(tiny_gpt(), "{}", micro_batches), 1);
  const Trained trained = train<float>(planned(tiny_gpt(), strategy, micro_batches), 1);
  CHECK(distance(trained, reference) <= 1e-5);
}

TEST_CASE("plans that cannot be run are refused by name") {
  const auto why = [](const std::string& strategy) {
    const Planned one = planned(tiny_gpt(), strategy, micro_batches);
    return refusal(one.program, one.plan.graph());
  };
  CHECK(why(R"({"data": 2, "zero": 2, "gradient_buffers": 2})") ==
        "gradients in buffers of a constant size");
  CHECK(why("{}").empty());
  model::GptConfig fused = tiny();
  fused.fused_attention = true;
  const model::Graph with_fused = model::gpt(fused);
  const Planned ring =
      planned(with_fused, R"({"context": 2, "context_exchange": "ring"})", micro_batches);
  CHECK(refusal(ring.program, ring.plan.graph()) ==
        "attention in a ring (task attention.core, message 1 of 1); with \"context_exchange\": "
        "\"gather\" it runs");
  const strategies::Plan gathers =
      lowering::plan_of(tiny_gpt(), R"({"tensor": 2, "sequence_parallel": true})", micro_batches);
  const auto with_rule = [&](const cost::Rule& rule) {
    return refusal(lowering::lower(gathers, {.rules = {rule}}), gathers.graph());
  };
  CHECK(with_rule(cost::GatherInPieces{}) ==
        "products in pieces, beside their collectives (task attention.qkv, piece 1 of 2)");
  CHECK(with_rule(cost::GatherBuffers{1}) ==
        "gathers into buffers that the framework keeps (task input_norm.out all_gather)");
  CHECK(with_rule(cost::StepSums::whole_gradients).empty());
  const Planned swapped = planned(tiny_gpt(), R"({"swap": 2})", micro_batches);
  CHECK(refusal(swapped.program, swapped.plan.graph(), Backend::cuda) ==
        "values that wait on the host, on a GPU (task copy out layers.0)");
  const Planned mixed = planned(tiny_mixture(Mixture::gpt), "{}", micro_batches);
  CHECK(refusal(mixed.program, mixed.plan.graph(), Backend::cuda) ==
        "mixtures of experts on a GPU (operator layers.1.mlp.dispatch)");
}

}  // namespace
}  // namespace stratagem::execute::agreement_test
