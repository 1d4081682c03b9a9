#include <string>
#include <iostream>
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"
#include "model/zoo/llama.hpp"
namespace stratagem::execute {
using strategies::lowered;
constexpr model::GptConfig tiny_gpt{.layers = 4, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};
void attempt(const model::Graph& graph, const std::string& strategy, const Trained& reference) {
  try {
    const auto p = planned(graph, strategy, 4);
    const std::string why = refusal(p.program, p.plan.graph());
    if (!why.empty()) { std::cout << strategy << ": refused: " << why << "\n"; return; }
    std::cout << strategy << ": " << std::flush << distance(train<double>(p), reference) << std::endl;
  } catch (const std::exception& e) { std::cout << strategy << ": " << e.what() << std::endl; }
}
TEST_CASE("try") {
  {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Trained reference = train<double>(graph, lowered(graph, "{}", 4), 4);
  std::cout << reference.losses[0] << " " << reference.losses[2] << "\n";
  for (const std::string s : {
      R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})", R"({"pipeline": 2, "schedule": "1f1b-interleaved", "chunks": 2})",
      R"({"pipeline": 2, "schedule": "chimera"})", R"({"pipeline": 4, "schedule": "chimera"})", R"({"pipeline": 2, "schedule": "zb-h2"})", R"({"pipeline": 2, "schedule": "zb-v"})",
      R"({"context": 2})", R"({"context": 2, "tensor": 2})", R"({"coshard": {"attention": 2, "mlp": 2}})",  R"({"coshard": {"attention": 2, "mlp": 2}, "recompute":"full"})",
      R"({"pipeline": 2, "schedule": "1f1b", "interlaced_embedding": true})", R"({"pipeline": 2, "schedule": "interlaced"})",
      R"({"pipeline": 2, "schedule": "1f1b", "recompute": "full"})", R"({"pipeline": 2, "schedule": "zb-h1", "recompute": "full"})",
      R"({"pipeline": 2, "schedule": "1f1b", "zero": 1, "data": 2})", R"({"pipeline": 2, "schedule": "gpipe", "zero": 2, "data": 2})", R"({"pipeline": 2, "schedule": "gpipe", "zero": 3, "data": 2})",
      R"({"data": 2, "overlap_gradients": true, "bucket": "1 KB"})",
      R"({"tensor": 2, "sequence_parallel": true, "recompute": "full"})", R"({"tensor": 2, "sequence_parallel": true, "recompute": "selective"})",
      R"({"data": 2, "offload": "optimizer"})", R"({"data": 2, "zero": 2, "offload": "optimizer"})", R"({"swap": 2})",
      R"({"pipeline": 2, "token_slices": 2, "schedule": "gpipe"})", R"({"pipeline": 2, "schedule": "bpipe"})", R"({"tensor": 2, "recompute": "full", "partition_checkpoints": true})",
      R"({"zero": {"stage": 3, "ranks": 2}, "data": 4})", R"({"zero": {"stage": 1, "ranks": 2}, "data": 4})", R"({"zero": {"stage": 2, "ranks": 2}, "data": 4})",R"({"pipeline": 2, "schedule": "pipedream"})", R"({"recompute": {"every": 2}})", R"({"recompute": {"mode":"full", "together": 2}})"})
    attempt(graph, s, reference);
  }
  for (const int kv : {4, 2}) {
    model::LlamaConfig c; c.layers = 4; c.hidden = 16; c.heads = 4; c.kv_heads = kv; c.intermediate = 24; c.sequence = 8; c.vocabulary = 24; c.batch = 4;
    c.fused_attention=false; 
    const model::Graph graph = model::llama(c);
    if (auto why = refusal(lowered(graph, "{}", 4), graph); !why.empty()) { std::cout << "llama " << why << "\n"; continue; }
    const Trained reference = train<double>(graph, lowered(graph, "{}", 4), 4);
    std::cout << "llama " << reference.losses[0] << " " << reference.losses[2] << "\n";
    for (const std::string s : { R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 2, "sequence_parallel": true})", R"({"pipeline": 2, "schedule": "1f1b"})", R"({"zero": 3, "data": 2})",R"({"recompute": "full"})"})
      attempt(graph, s, reference);
  }
}
}
