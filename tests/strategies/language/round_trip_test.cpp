// Plans written as plan files and read again lower to the same programs.
#include "model/zoo/t5.hpp"
#include "strategies/language/plan_file.hpp"
#include "strategies/language/plan_text.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/small_evoformer.hpp"
#include "tests/lowering/variants.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::strategies::round_trip_test {

using lowering::small_gpt;

namespace {

/// By a framework that also gathers what nothing divides, so that such plans show in the program.
std::string program_of(const Plan& plan) {
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {cost::ShardCollectives{.of_one_rank = true}};
  return to_text(lowering::lower(plan, stack));
}

model::Graph small_t5() {
  model::T5Config config;
  config.layers = config.decoder_layers = 2;
  config.hidden = 48;
  config.heads = 8;
  config.intermediate = 88;
  config.sequence = 20;
  config.decoder_sequence = 12;
  config.vocabulary = 112;
  config.batch = 12;
  return model::t5(config);
}

model::Graph prefix_tuned_gpt() {
  model::GptConfig config = small_gpt;
  config.prefix = 5;
  return model::gpt(config);
}

void round_trip(const model::Graph& graph, const std::string& strategy, int micro_batches) {
  INFO(strategy);
  const Plan named = lowering::plan_of(graph, strategy, micro_batches);
  const std::string text = file_text(named);
  const Plan read = read_plan(JsonReader::from_text(text, "plan.json"), graph, micro_batches);
  CHECK(file_text(read) == text);
  const bool same = program_of(read) == program_of(named);  // not printed: long
  CHECK(same);
}

model::Graph untied_gpt() {
  model::GptConfig config = small_gpt;
  config.tied = false;
  return model::gpt(config);
}

model::Graph fused_gpt() {
  model::GptConfig config = small_gpt;
  config.fused_attention = true;
  return model::gpt(config);
}

model::Graph mixture_of_experts() {
  model::GptConfig config = small_gpt;
  config.experts.count = 16;
  config.experts.per_token = 2;
  config.experts.every = 2;
  return model::gpt(config);
}

}  // namespace

TEST_CASE("a plan file says what lives on drives, and beside steps on the host") {
  const model::Graph graph = untied_gpt();
  const std::string all =
      R"({"zero": 3, "offload": {"optimizer": "drives", "parameters": "drives"}})";
  const std::string text = file_text(lowering::plan_of(graph, all, 2));
  const std::string steps = R"({"op-assign": "steps", "to": "host"})";
  const std::string states = R"({"keep": "states", "where": "drives"})";
  REQUIRE_THAT(text, ContainsSubstring(steps));
  REQUIRE_THAT(text, ContainsSubstring(states));
  CHECK_THAT(text, ContainsSubstring(R"({"keep": "parameters", "where": "drives")"));
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return lowering::refusal([&] {
      lowering::lower(read_plan(JsonReader::from_text(changed, "plan.json"), graph, 2),
                      lowering::plain_stack());
    });
  };
  CHECK(refused(states, states).empty());
  CHECK(refused(states, states + ", " + states).empty());
  CHECK_THAT(refused(states, R"({"keep": "states", "where": "host"})"),
             ContainsSubstring("/where: expected drives for states"));
  CHECK_THAT(refused(steps + ",", ""), ContainsSubstring("steps on the host"));
}

TEST_CASE("what plans said of swaps and evictions before there was keep is refused in its words") {
  const model::Graph graph = untied_gpt();
  const std::string text = file_text(lowering::plan_of(graph, R"({"pipeline": 2})", 4));
  const auto with = [&](const std::string& primitive) {
    std::string changed = text;
    changed.replace(changed.rfind("\n  ]"), 0, ",\n    " + primitive);
    return file_text(read_plan(JsonReader::from_text(changed, "plan.json"), graph, 4));
  };
  // The error names what says the same now, and that can be read.
  const auto refused = [&](const std::string& before, const std::string& now) {
    CHECK_THAT(lowering::refusal([&] { with(before); }), ContainsSubstring(": expected " + now));
    CHECK_THAT(with(now), ContainsSubstring(R"({"keep": "activations")"));
  };
  refused(R"({"op-trans": "layers.[0-1]", "swap": "host", "prefetch": 2})",
          R"({"keep": "activations", "of": "layers.[0-1]", "where": "host"})");
  refused(R"({"op-trans": "layers.0", "swap": 1})",
          R"({"keep": "activations", "of": "layers.0", "where": 1})");
  refused(R"~({"op-trans": "F(0, 2) F(0, 3)", "evict": 1})~",
          R"~({"keep": "activations", "cells": "F(0, 2) F(0, 3)", "where": 1})~");
}

TEST_CASE("every schedule, written and read again, lowers to the same program") {
  model::GptConfig config = small_gpt;
  config.layers = 8;
  for (const Schedule& entry : schedules()) {
    model::Graph graph = model::gpt(config);
    if (entry.name == "3f1b") graph.forward_repeats = 3;
    round_trip(graph, R"~({"pipeline": 4, "schedule": ")~" + entry.name + "\"}", 8);
  }
}

TEST_CASE("every variant, written and read again, lowers to the same program") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const auto& [strategy, micro_batches] : lowering::variants())
    round_trip(graph, strategy, micro_batches);
}

TEST_CASE("strategies of all kinds, written and read again, lower to the same program") {
  const model::Graph gpt = model::gpt(small_gpt);
  const model::Graph untied = untied_gpt();
  const model::Graph mixture = mixture_of_experts();
  const model::Graph evoformer = model::evoformer(lowering::small_evoformer);
  const model::Graph t5 = small_t5();
  const model::Graph fused = fused_gpt();
  const model::Graph prefix_tuned = prefix_tuned_gpt();
  const std::vector<std::pair<const model::Graph*, std::string>> table = {
      {&gpt, R"~({"tensor": 2, "data": 3, "pipeline": 4, "overlap_gradients": true,
                  "bucket": "3 KB"})~"},
      {&gpt, R"~({"pipeline": 2, "layers_per_stage": [3, 1], "bucket": "12345 B"})~"},
      {&gpt, R"~({"pipeline": 2, "token_slices": [8, 8, 4], "tensor": 2})~"},
      {&gpt, R"~({"pipeline": 4, "ranks_per_device": 2})~"},
      {&gpt, R"~({"pipeline": 2, "replicas_per_stage": [2, 2], "schedule": "pipedream-2bw"})~"},
      {&gpt, R"~({"pipeline": 4, "replicas_per_stage": [4, 1, 2, 1], "schedule": "pipedream",
                  "data": 2, "tensor": 2})~"},
      {&gpt,
       R"~({"pipeline": 2, "replicas_per_stage": [1, 4], "schedule": "pipedream-vertical"})~"},
      {&gpt, R"~({"pipeline": 4, "ranks_per_device": 2, "schedule": "gpipe", "data": 2})~"},
      {&gpt, R"~({"pipeline": 2, "tensor": 2, "schedule": "interleaved"})~"},
      {&untied, R"~({"pipeline": 2, "embedding": "all", "head": 0})~"},
      {&untied, R"~({"pipeline": 4, "embedding": "all", "head": "all", "tensor": 2})~"},
      {&untied, R"~({"pipeline": 2, "embedding": 1, "head": "all", "data": 3})~"},
      {&gpt, R"~({"tensor": 4, "sequence_parallel": true, "data": 2, "pipeline": 2})~"},
      {&gpt, R"~({"context": 2, "tensor": 2, "data": 3, "pipeline": 2})~"},
      {&fused, R"~({"context": 2, "context_exchange": "ring", "ulysses": 2, "pipeline": 2})~"},
      {&gpt, R"~({"ulysses": 2, "tensor": 2, "sequence_parallel": true, "pipeline": 2})~"},
      {&gpt, R"~({"tensor": 4, "operators": {"layers.*.mlp.*": "", "*.fc2": "n", "*norm": "s"}})~"},
      {&mixture, R"~({"data": 4, "expert": 2, "tensor": 2})~"},
      {&mixture, R"~({"data": 4, "expert": 4, "pipeline": 2, "recompute": "selective"})~"},
      {&evoformer, R"~({"dap": 2, "data": 2})~"},
      {&evoformer, R"~({"dap": 4, "recompute": "selective"})~"},
      {&evoformer, R"~({"dap": 2, "recompute": "full"})~"},
      {&gpt, R"~({"recompute": "selective", "tensor": 2, "pipeline": 2})~"},
      {&gpt, R"~({"coshard": 2})~"},
      {&gpt, R"~({"coshard": {"attention": 2, "mlp": 4}})~"},
      {&gpt, R"~({"coshard": {"attention": 1, "mlp": 4}, "tensor": 4})~"},
      {&gpt, R"~({"coshard": {"attention": 2, "mlp": 4}, "tensor": 2, "data": 3, "pipeline": 2})~"},
      {&gpt, R"~({"coshard": 2, "coshard_layers": 2, "recompute": "full", "pipeline": 4})~"},
      {&gpt, R"~({"coshard": 2, "coshard_layers": 2, "recompute": "selective"})~"},
      {&gpt, R"~({"coshard": 2, "pipeline": 4, "schedule": "chimera"})~"},
      {&mixture, R"~({"coshard": 2, "data": 2})~"},
      {&evoformer, R"~({"coshard": 2, "data": 2})~"},
      {&evoformer, R"~({"coshard": {"attention": 2, "mlp": 1}, "pipeline": 3})~"},
      {&t5, R"~({"tensor": 2, "data": 3, "pipeline": 4})~"},
      {&t5, R"~({"tensor": 4, "sequence_parallel": true, "recompute": "selective"})~"},
      {&t5, R"~({"coshard": 2, "pipeline": 2, "schedule": "zb-v"})~"},
      {&prefix_tuned, R"~({"tensor": 2, "data": 3, "pipeline": 4})~"},
      {&prefix_tuned, R"~({"zero": 3, "data": 2, "recompute": {"every": 2}})~"},
      {&untied, R"~({"zero": {"stage": 3, "prefetch": 2, "whole_below": 3000}, "data": 2})~"},
      {&untied, R"~({"zero": {"stage": 3, "prefetch": 2}, "tensor": 2})~"},
      {&untied, R"~({"zero": {"stage": 1, "prefetch": 2}, "data": 2})~"},
      {&untied, R"~({"zero": {"stage": 3, "reshard_after_forward": false}, "data": 2})~"},
      {&untied, R"~({"zero": {"stage": 3, "reshard_after_forward": 2}, "data": 4})~"},
      {&untied, R"~({"zero": 2, "data": 2, "offload": {"optimizer": "drives",
                                                      "gradients": "drives"}})~"},
      {&untied, R"~({"zero": 2, "data": 2, "bucket": "20 KB", "gradient_buffers": 2})~"},
  };
  for (std::size_t i = 0; i < table.size(); i += stride(4))
    round_trip(*table[i].first, table[i].second, 4);
}

}  // namespace stratagem::strategies::round_trip_test
