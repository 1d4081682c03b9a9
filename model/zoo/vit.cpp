// Builds the ViT graph from its configuration.
#include "model/zoo/vit.hpp"

#include <string>
#include <utility>

#include "model/operator_kinds.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/transformer.hpp"
#include "model/zoo/transformer_options.hpp"

namespace stratagem::model {
namespace {

TransformerConfig layers_of(const VitConfig& c) {
  return {.layers = c.layers,
          .hidden = c.hidden,
          .sequence = c.images.patches() + (c.pool == ImagePool::class_token ? 1 : 0),
          .batch = c.batch,
          .type = c.type,
          .dropout = c.dropout,
          .attention = {.heads = c.heads, .sight = {.causal = false}, .fused = c.fused_attention},
          .mlp = {.inner = c.intermediate > 0 ? c.intermediate : 4 * c.hidden},
          .experts = {}};
}

class Vit {
 public:
  explicit Vit(const VitConfig& config)
      : c_(config),
        has_class_token_(config.pool == ImagePool::class_token),
        of_(layers_of(config)),
        build_("vit") {}

  Graph build() && {
    build_.begin_segment("embedding");
    const TensorId rows = patches_of(build_, c_.images, c_.batch, c_.hidden, c_.type);
    const TensorId placed = with_positions(has_class_token_ ? with_class_token(rows) : rows);
    const TensorId x = layers(build_, of_, dropped(build_, of_, "dropout", placed));
    build_.begin_segment("head");
    const TensorId normed = norm(build_, of_.norm, "final_norm", x);
    const TensorId loss = loss_of_classes(build_, c_.images, one_row(normed));
    Graph graph = std::move(build_).finish(loss);
    graph.sample_tokens = of_.sequence;
    return graph;
  }

 private:
  TensorId rows(const std::string& name) {
    return build_.tensor(name, {c_.batch, of_.sequence, c_.hidden}, c_.type, Role::activation);
  }

  TensorId with_class_token(TensorId patches) {
    const TensorId token = build_.parameter("class_token", {1, c_.hidden}, c_.type);
    const TensorId y = rows("with_class_token");
    build_.add(OpKind::prepend, "prepend_class_token", "b p^ h^, one^ h^ -> b s^ h^",
               {patches, token}, {y});
    return y;
  }

  TensorId with_positions(TensorId x) {
    const TensorId positions = build_.parameter("positions", {of_.sequence, c_.hidden}, c_.type);
    const TensorId y = rows("placed");
    build_.add(OpKind::add, "add_positions", "b s h, s h -> b s h", {x, positions}, {y});
    return y;
  }

  TensorId one_row(TensorId x) {
    const TensorId y = build_.tensor("pooled", {c_.batch, c_.hidden}, c_.type, Role::activation);
    build_.add(operator_named(has_class_token_ ? "first_token" : "token_mean"), "pool",
               "b s^ h -> b h", {x}, {y});
    return y;
  }

  const VitConfig& c_;
  bool has_class_token_;
  TransformerConfig of_;
  Builder build_;
};

void complete_vit(VitConfig& c, const JsonReader& config) {
  check_heads(config, c);
  check_images(config, c.images);
}

}  // namespace

Graph vit(const VitConfig& config) { return Vit(config).build(); }

Family vit_family() {
  using C = VitConfig;
  const auto size = whole(1, 10'000'000);
  return family_of<C>(
      "vit", "ViT: a transformer whose tokens are patches of an image",
      with_images<C>(
          {{"layers", &C::layers, whole(1, 10'000), "layers", must_be_there},
           {"hidden", &C::hidden, size, "hidden size", must_be_there},
           {"heads", &C::heads, size, "heads of every attention; divides `hidden`", must_be_there},
           {"intermediate", &C::intermediate, size, "width of the MLP", "4 x `hidden`"},
           {"pool", &C::pool,
            choice<ImagePool>({{"class token", ImagePool::class_token}, {"mean", ImagePool::mean}}),
            "what an image's class is told from: a trained token before the patches, or the mean "
            "of all"},
           {"dropout", &C::dropout, flag(),
            "after the positions, on attention probabilities and before residual sums, or nowhere"},
           fused_attention_option<C>(&C::fused_attention)}),
      &complete_vit, &vit);
}

}  // namespace stratagem::model
