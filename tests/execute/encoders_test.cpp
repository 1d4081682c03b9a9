// Plans of models with encoders compute what one device computes: T5 and BERT.
#include <array>
#include <string>

#include "model/zoo/bert.hpp"
#include "model/zoo/t5.hpp"
#include "tests/execute/agreement.hpp"
#include "tests/execute/small_models.hpp"

namespace stratagem::execute::encoders_test {
namespace {

/// As published, its successor with gates and two tables, and Megatron-LM's.
enum class T5 : std::uint8_t { published, newer, megatron };
const model::Graph& tiny_t5(T5 which) {
  const auto newer = [] {
    model::T5Config config = small_t5();
    config.head_width = 2;
    config.variant.mlp = model::T5Mlp::gated_gelu;
    config.tied = false;
    return model::t5(config);
  };
  const auto megatron = [] {
    model::T5Config config = small_t5();
    config.variant.mlp = model::T5Mlp::gelu;
    config.variant.kind = model::T5Kind::megatron;
    config.bias_buckets = 0;
    return model::t5(config);
  };
  static const std::array graphs = {model::t5(small_t5()), newer(), megatron()};
  return graphs[static_cast<std::size_t>(which)];
}

/// Norms before or after the sums; attention in parts or in one kernel; with and without the loss
/// of sentences.
enum class Encoder : std::uint8_t { published, megatron, words_alone };
const model::Graph& tiny_bert(Encoder encoder) {
  const auto build = [](model::NormPlace norms, bool fused, bool sentences) {
    return model::bert({.layers = 4,
                        .hidden = 16,
                        .heads = 4,
                        .sequence = 8,
                        .vocabulary = 24,
                        .batch = 4,
                        .norms = norms,
                        .fused_attention = fused,
                        .next_sentence = sentences});
  };
  static const std::array graphs = {build(model::NormPlace::after, false, true),
                                    build(model::NormPlace::before, true, true),
                                    build(model::NormPlace::after, true, false)};
  return graphs[static_cast<std::size_t>(encoder)];
}

TEST_CASE("T5 trains as on one device") {
  check_agreement(
      tiny_t5(T5::published),
      GENERATE(
          as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 4})",
          R"({"tensor": 2, "sequence_parallel": true})", R"({"data": 2, "tensor": 2})",
          R"({"context": 2})", R"({"zero": 1, "data": 2})", R"({"zero": 2, "data": 2})",
          R"({"zero": 3, "data": 2})", R"({"recompute": "full"})", R"({"recompute": "selective"})",
          R"({"recompute": {"every": 2}})", R"({"coshard": {"attention": 2, "mlp": 4}})",
          R"({"coshard": {"attention": 2, "mlp": 2}, "tensor": 2})",
          R"({"pipeline": 2, "schedule": "gpipe"})", R"({"pipeline": 2, "schedule": "1f1b"})",
          R"({"pipeline": 4, "schedule": "1f1b"})", R"({"pipeline": 2, "schedule": "zb-h1"})",
          R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})",
          R"({"pipeline": 2, "schedule": "1f1b", "recompute": "full"})",
          R"({"pipeline": 2, "schedule": "1f1b", "zero": 1, "data": 2})",
          R"({"pipeline": 2, "schedule": "1f1b", "zero": {"stage": 1, "prefetch": 1}, "data": 2})",
          R"({"pipeline": 2, "schedule": "1f1b", "tensor": 2})",
          R"({"pipeline": 2, "schedule": "zb-v"})", R"({"pipeline": 4, "schedule": "chimera"})",
          R"({"pipeline": 2, "schedule": "dualpipe"})",
          R"({"pipeline": 4, "schedule": "gpipe", "zero": 3, "data": 2})"));
}

TEST_CASE("a gated, untied T5 and Megatron-LM's train as on one device") {
  check_agreement(tiny_t5(GENERATE(T5::newer, T5::megatron)),
                  GENERATE(as<std::string>{}, R"({"data": 2, "tensor": 2})",
                           R"({"tensor": 2, "sequence_parallel": true})",
                           R"({"pipeline": 2, "schedule": "1f1b"})", R"({"context": 2})",
                           R"({"coshard": {"attention": 2, "mlp": 2}})", R"({"recompute": "full"})",
                           R"({"zero": 3, "data": 2})"));
}

TEST_CASE("BERT trains as on one device") {
  check_agreement(
      tiny_bert(GENERATE(Encoder::published, Encoder::megatron, Encoder::words_alone)),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 4})",
               R"({"tensor": 2, "sequence_parallel": true})", R"({"zero": 3, "data": 2})",
               R"({"recompute": "full"})", R"({"recompute": "selective"})",
               R"({"coshard": {"attention": 2, "mlp": 2}})",
               R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})",
               R"({"pipeline": 4, "schedule": "zb-h1"})",
               R"({"pipeline": 2, "schedule": "1f1b", "tensor": 2, "zero": 1, "data": 2})"));
}

TEST_CASE("BERT without the loss of sentences divides its tokens, too") {
  check_agreement(tiny_bert(Encoder::words_alone),
                  GENERATE(as<std::string>{}, R"({"context": 2})", R"({"context": 4})",
                           R"({"context": 2, "tensor": 2, "sequence_parallel": true})"));
}

}  // namespace
}  // namespace stratagem::execute::encoders_test
