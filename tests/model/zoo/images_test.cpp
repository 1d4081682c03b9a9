// Classifiers of images: parameters of the released models, products in closed form, and what a
// moved image changes.
#include <algorithm>
#include <set>

#include "model/operator_kinds.hpp"
#include "model/zoo/swin.hpp"
#include "model/zoo/vit.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::images_test {
namespace {

SwinConfig sized(std::vector<std::int64_t> depths, std::int64_t hidden, std::int64_t heads) {
  return {.depths = std::move(depths), .hidden = hidden, .heads = heads};
}

VitConfig vit_of(std::int64_t layers, std::int64_t hidden, std::int64_t patch) {
  return {.layers = layers, .hidden = hidden, .heads = 16, .images = {.patch = patch}};
}

std::int64_t of_kind(const Graph& graph, std::string_view kind) {
  return std::ranges::count_if(graph.operators, [&](const Operator& op) {
    return op.kind == operator_named(kind) && op.pass == Pass::forward;
  });
}

TEST_CASE("Swin has as many parameters as the released models") {
  // torchvision's swin_t, swin_s and swin_b, 224 x 224 pixels, 1,000 classes.
  CHECK(parameter_count(swin(sized({2, 2, 6, 2}, 96, 3))) == 28'288'354);
  CHECK(parameter_count(swin(sized({2, 2, 18, 2}, 96, 3))) == 49'606'258);
  CHECK(parameter_count(swin(sized({2, 2, 18, 2}, 128, 4))) == 87'768'224);
}

TEST_CASE("the Swins of nnScaler's evaluation have the sizes of its scripts") {
  // Matrices alone: sum of depth * 12 (E 2^k)^2, 8 (E 2^k)^2 between levels, 48 E and 8,000 E. The
  // table counts 1.79, 4.93, 10.38 and 26.96 billion; biases of 95 x 95 offsets are counted here.
  const auto parameters = [](std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
    SwinConfig c = sized({2, 2, layers - 6, 2}, hidden, heads);
    c.images.size = 1536;
    c.window = 48;
    return static_cast<double>(parameter_count(swin(c))) / 1e9;
  };
  CHECK(parameters(32, 512, 16) == Approx(1.79).epsilon(0.02));
  CHECK(parameters(40, 768, 24) == Approx(4.93).epsilon(0.02));
  CHECK(parameters(48, 1024, 32) == Approx(10.38).epsilon(0.02));
  CHECK(parameters(56, 1536, 32) == Approx(26.96).epsilon(0.02));
}

TEST_CASE("ViT has as many parameters as the released models") {
  // torchvision's vit_b_16, vit_l_16 and vit_h_14, 224 x 224 pixels, 1,000 classes.
  CHECK(parameter_count(vit(vit_of(12, 768, 16))) == 86'567'656);
  CHECK(parameter_count(vit(vit_of(24, 1024, 16))) == 304'326'632);
  CHECK(parameter_count(vit(vit_of(32, 1280, 14))) == 632'045'800);
}

TEST_CASE("products of a Swin are those of its matrices and of the pairs within windows") {
  // Liu et al., equation 2: 4 h w C^2 + 2 M^2 h w C multiplications for an attention.
  SwinConfig c = sized({2, 2, 4}, 16, 2);
  c.batch = 3;
  c.images = {.size = 64, .patch = 4, .classes = 10};
  c.window = 4;
  double forward = 0, tokens = 256, hidden = 16;
  for (const double depth : {2, 2, 4}) {
    forward += depth * tokens * (4 * hidden * hidden + 2 * 16 * hidden + 8 * hidden * hidden);
    tokens /= 4;
    hidden *= 2;
    if (hidden <= 64) forward += tokens * 2 * hidden * hidden;  // between levels
  }
  forward += 256 * 48 * 16 + 64 * 10;
  // No gradient of the image: of the first matrix there are two products, not three.
  const double all = 3 * forward - 256 * 48 * 16;
  CHECK(close(step_flops(swin(c)), Flops{2 * 3 * all}, 1e-12));
}

TEST_CASE("products of a ViT are those of its matrices, and of all pairs") {
  for (const bool fused : {false, true}) {
    VitConfig c = vit_of(2, 64, 8);
    c.batch = 3;
    c.images = {.size = 32, .patch = 8, .classes = 10};
    c.fused_attention = fused;
    for (const ImagePool pool : {ImagePool::class_token, ImagePool::mean}) {
      c.pool = pool;
      const double s = pool == ImagePool::mean ? 16 : 17, h = 64, patches = 16 * 192 * h;
      const double forward = 2 * (s * 12 * h * h + 2 * s * s * h) + patches + h * 10;
      CHECK(close(step_flops(vit(c)), Flops{2 * 3 * (3 * forward - patches)}, 1e-12));
    }
  }
}

TEST_CASE("every second layer of a Swin is moved, but not where a window is all of the image") {
  SwinConfig c = sized({3, 2, 2}, 16, 2);
  c.images = {.size = 64, .patch = 4};
  c.window = 4;  // levels of 16, 8 and 4 rows
  const Graph graph = swin(c);
  CHECK(of_kind(graph, "shift") == 2);
  CHECK(of_kind(graph, "shift_back") == 2);
  CHECK(of_kind(graph, "window_mask") == 2);
  CHECK(of_kind(graph, "windows") == 7 + 2);
  CHECK(of_kind(graph, "from_windows") == 7);
  CHECK(model::layers(graph).size() == 7);
}

TEST_CASE("an attention of nnScaler's 5B Swin keeps its probabilities, 16.3 GB, and little else") {
  // The paper says 21 GB of the first layer: 64 windows of 2,304 tokens, 24 heads, two bytes each;
  // and what else its backward pass reads. Biases and masks of pairs are 0.9 GB, read forward only.
  SwinConfig c = sized({2, 2, 34, 2}, 768, 24);
  c.images.size = 1536;
  c.window = 48;
  const Graph graph = swin(c);
  std::set<TensorId> kept;
  for (const OpId id : graph.segments[1].backward) {
    for (const TensorId tensor : graph.operators[id].inputs) {
      const Role role = graph.tensors[tensor].role;
      if (role == Role::activation || role == Role::statistic) kept.insert(tensor);
    }
  }
  Bytes all, probabilities;
  for (const TensorId tensor : kept) {
    all += bytes(graph.tensors[tensor]);
    if (graph.tensors[tensor].name.ends_with("probabilities"))
      probabilities += bytes(graph.tensors[tensor]);
  }
  CHECK(probabilities == Bytes{64LL * 24 * 2304 * 2304 * 2});
  CHECK(all.value / 1e9 == Approx(21).epsilon(0.06));
}

}  // namespace
}  // namespace stratagem::model::images_test
