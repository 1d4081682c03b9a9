// Plans of classifiers of images compute what one device computes: ViT and Swin.
#include <array>
#include <string>

#include "base/json_reader.hpp"
#include "model/written/form.hpp"
#include "model/zoo/swin.hpp"
#include "model/zoo/vit.hpp"
#include "tests/execute/agreement.hpp"

namespace stratagem::execute::images_test {
namespace {

/// Three levels of 8, 4 and 2 rows: layers that are moved, that are not, and one window a level.
const model::SwinConfig tiny_config{.depths = {2, 3, 1},
                                    .hidden = 8,
                                    .heads = 4,
                                    .batch = 4,
                                    .images = {.size = 16, .patch = 2, .classes = 6},
                                    .window = 2};
const model::Graph& tiny_swin() {
  static const model::Graph graph = model::swin(tiny_config);
  return graph;
}

/// With a class token and attention in parts; with a mean, in one kernel, and dropout.
const model::Graph& tiny_vit(model::ImagePool pool) {
  const auto build = [](model::ImagePool of) {
    return model::vit({.layers = 4,
                       .hidden = 16,
                       .heads = 4,
                       .batch = 4,
                       .images = {.size = 12, .patch = 4, .classes = 6},
                       .pool = of,
                       .dropout = of == model::ImagePool::mean,
                       .fused_attention = of == model::ImagePool::mean});
  };
  static const std::array graphs = {build(model::ImagePool::class_token),
                                    build(model::ImagePool::mean)};
  return graphs[static_cast<std::size_t>(pool)];
}

TEST_CASE("Swin trains as on one device") {
  check_agreement(
      tiny_swin(),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"data": 4})", R"({"tensor": 2})",
               R"({"tensor": 4})", R"({"tensor": 2, "sequence_parallel": true})",
               R"({"zero": 1, "data": 2})", R"({"zero": 3, "data": 2})", R"({"recompute": "full"})",
               R"({"recompute": "selective"})", R"({"coshard": 2})",
               R"({"coshard": {"attention": 2, "mlp": 4}, "tensor": 2})",
               R"({"pipeline": 2, "schedule": "1f1b", "coshard": 2, "tensor": 2})",
               R"({"coshard": 2, "recompute": "full"})",
               R"({"coshard": 2, "pipeline": 2, "schedule": "zb-h1", "tensor": 2,
                   "recompute": {"operators": ["layers.*_norm", "layers.*.attention.windows",
                                               "layers.*.attention.shift", "layers.*.merge.*"],
                                 "results": "dropped"}})",
               R"({"pipeline": 2, "schedule": "gpipe"})", R"({"pipeline": 3, "schedule": "zb-h1"})",
               R"({"pipeline": 2, "schedule": "interleaved", "chunks": 3})",
               R"({"pipeline": 2, "schedule": "dualpipe"})",
               R"({"pipeline": 3, "schedule": "1f1b", "tensor": 2, "zero": 1, "data": 2})"));
}

TEST_CASE("a Swin as data trains as the same Swin") {
  const auto of_batch = [](std::int64_t batch) {
    model::SwinConfig c = tiny_config;
    c.batch = batch;
    return model::swin(c);
  };
  const std::string text = model::written(of_batch(1), of_batch(2));
  const model::Graph again = model::graph_of(
      model::read_written(JsonReader::from_text(text, "swin.json")), 4, model::DataType::fp16);
  for (const char* strategy : {"{}", R"({"pipeline": 2, "tensor": 2})"})
    CHECK(distance(train<double>(planned(again, strategy, micro_batches)),
                   train<double>(planned(tiny_swin(), strategy, micro_batches))) <= 1e-9);
}

TEST_CASE("ViT trains as on one device") {
  check_agreement(
      tiny_vit(GENERATE(model::ImagePool::class_token, model::ImagePool::mean)),
      GENERATE(as<std::string>{}, R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 4})",
               R"({"zero": 3, "data": 2})", R"({"recompute": "full"})", R"({"coshard": 2})",
               R"({"pipeline": 4, "schedule": "zb-h1"})",
               R"({"pipeline": 2, "schedule": "1f1b", "tensor": 2, "zero": 1, "data": 2})"));
}

}  // namespace
}  // namespace stratagem::execute::images_test
