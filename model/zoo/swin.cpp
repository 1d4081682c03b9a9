// Builds the Swin graph level by level.
#include "model/zoo/swin.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "model/operator_kinds.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/attention.hpp"
#include "model/zoo/mlp.hpp"
#include "model/zoo/norm.hpp"

namespace stratagem::model {
namespace {

/// A level's image of tokens and what its layers are like.
struct Level {
  ImageWindows image;
  std::int64_t hidden = 0, heads = 0;

  [[nodiscard]] std::int64_t tokens() const { return image.rows * image.rows; }
  [[nodiscard]] std::int64_t window() const { return image.side * image.side; }
  [[nodiscard]] bool is_one_window() const { return image.side == image.rows; }
};

Level level_of(const SwinConfig& c, std::size_t number) {
  const std::int64_t rows = c.images.across() >> number;
  return {.image = {.rows = rows, .side = std::min(c.window, rows)},
          .hidden = c.hidden << number,
          .heads = c.heads << number};
}

class Swin {
 public:
  explicit Swin(const SwinConfig& config) : c_(config), build_("swin") {}

  Graph build() && {
    build_.begin_segment("patches");
    TensorId x = patches_of(build_, c_.images, c_.batch, c_.hidden, c_.type);
    x = norm("norm", x);
    std::int64_t number = 0;
    for (std::size_t at = 0; at < c_.depths.size(); ++at) {
      level_ = level_of(c_, at);
      for (std::int64_t layer = 0; layer < c_.depths[at]; ++layer) {
        build_.begin_segment("layers." + std::to_string(number++));
        if (at > 0 && layer == 0) x = merged(x, level_of(c_, at - 1));
        const bool moved = layer % 2 == 1 && !level_.is_one_window();
        x = feed_forward(attention(x, moved));
      }
    }
    build_.begin_segment("head");
    const TensorId pooled = activation("pooled", {c_.batch, build_[x].shape.back()});
    build_.add(operator_named("token_mean"), "pool", "b s^ h -> b h", {norm("final_norm", x)},
               {pooled});
    Graph graph = std::move(build_).finish(loss_of_classes(build_, c_.images, pooled));
    graph.sample_tokens = c_.images.patches();
    return graph;
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }
  TensorId norm(const std::string& name, TensorId x) {
    return model::norm(build_, OpKind::layer_norm, name, x);
  }
  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = activation(name + ".residual.out", build_[x].shape);
    build_.add(OpKind::add, name + ".residual", "b s h, b s h -> b s h", {branch, x}, {sum});
    return sum;
  }

  /// Moves tokens of the level's image, or of another one.
  TensorId move(const char* kind, const std::string& name, const std::string& annotation,
                TensorId x, std::vector<std::int64_t> shape, ImageWindows image) {
    const TensorId y = activation(name + ".out", std::move(shape));
    build_.set_image(build_.add(operator_named(kind), name, annotation, {x}, {y}), image);
    return y;
  }
  TensorId shifted(const char* kind, TensorId x) {
    return move(kind, "attention." + std::string(kind), "b s^ h -> b s^ h", x, build_[x].shape,
                level_.image);
  }

  TensorId attention(TensorId x, bool moved) {
    const std::int64_t windows = c_.batch * level_.tokens() / level_.window();
    TensorId y = norm("attention_norm", x);
    if (moved) y = shifted("shift", y);
    y = move("windows", "attention.windows", "b s^ h -> (b w^) t^ h", y,
             {windows, level_.window(), level_.hidden}, level_.image);
    const TransformerConfig within{.hidden = level_.hidden,
                                   .sequence = level_.window(),
                                   .batch = windows,
                                   .type = c_.type,
                                   .positions = Positions::none,
                                   .attention = {.heads = level_.heads, .sight = {.causal = false}},
                                   .mlp = {},
                                   .experts = {}};
    y = self_attention(build_, within, y, 0, [&](TensorId scores, const std::string& dims) {
      const TensorId sum = biased(scores, dims);
      return moved ? masked(sum) : sum;
    });
    y = move("from_windows", "attention.from_windows", "(b w^) t^ h -> b s^ h", y,
             {c_.batch, level_.tokens(), level_.hidden}, level_.image);
    return residual("attention", moved ? shifted("shift_back", y) : y, x);
  }

  TensorId biased(TensorId scores, const std::string& dims) {
    const std::int64_t offsets = 2 * level_.image.side - 1;
    const TensorId table =
        build_.parameter("attention.biases", {offsets * offsets, level_.heads}, c_.type);
    const TensorId bias =
        activation("attention.bias.out", {level_.heads, level_.window(), level_.window()});
    build_.set_image(build_.add(operator_named("window_bias"), "attention.bias",
                                "offsets^ heads -> heads s^ t^", {table}, {bias}),
                     level_.image);
    const TensorId sum = activation("attention.biased", build_[scores].shape);
    build_.add(OpKind::add, "attention.add_bias", dims + ", heads s t -> " + dims, {scores, bias},
               {sum});
    return sum;
  }

  TensorId masked(TensorId scores) {
    return move("window_mask", "attention.mask", "(b w^) heads s^ t^ -> (b w^) heads s^ t^", scores,
                build_[scores].shape, level_.image);
  }

  TensorId feed_forward(TensorId x) {
    const Rows rows = tokens(c_.batch, level_.tokens());
    const Mlp of{.inner = c_.mlp_ratio * level_.hidden};
    return residual("mlp", mlp(build_, rows, norm("mlp_norm", x), of), x);
  }

  /// Four neighbours side by side, of half as many rows and columns, as wide as the level's tokens.
  TensorId merged(TensorId x, const Level& before) {
    const std::int64_t width = 4 * before.hidden;
    const TensorId wide =
        move("windows", "merge.neighbours", "b s^ h^ -> b t^ (four^ h^)", x,
             {c_.batch, level_.tokens(), width}, {.rows = before.image.rows, .side = 2});
    return linear(build_, tokens(c_.batch, level_.tokens()), "merge.reduction",
                  norm("merge.norm", wide), level_.hidden, Bias::none);
  }

  const SwinConfig& c_;
  Builder build_;
  Level level_;
};

void complete_swin(SwinConfig& c, const JsonReader& config) {
  check_images(config, c.images);
  if (c.depths.size() > 16) config.at("depths").fail("at most 16 levels");
  if (c.hidden % c.heads != 0)
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden));
  for (std::size_t at = 0; at < c.depths.size(); ++at) {
    const std::int64_t rows = c.images.across() >> at;
    const std::string level = std::to_string(rows) + " rows of level " + std::to_string(at + 1);
    if (rows << at != c.images.across())
      config.at("depths").fail("levels that halve the image's " +
                               std::to_string(c.images.across()) + " rows of patches evenly");
    if (rows % std::min(c.window, rows) != 0)
      config.at(config.has("window") ? "window" : "image")
          .fail("windows of " + std::to_string(c.window) + " tokens that divide the " + level);
  }
}

}  // namespace

Graph swin(const SwinConfig& config) { return Swin(config).build(); }

Family swin_family() {
  using C = SwinConfig;
  const auto size = whole(1, 1'000'000);
  return family_of<C>(
      "swin", "Swin: attention within windows of an image, which shrinks from level to level",
      with_images<C>(
          {{"depths", &C::depths, list_of<std::int64_t>(whole(1, 10'000), 1),
            "layers of each level; each has half the rows and columns of the one before, and twice "
            "its hidden size and heads",
            must_be_there},
           {"hidden", &C::hidden, size, "hidden size of the first level", must_be_there},
           {"heads", &C::heads, size, "heads of the first level; divides `hidden`", must_be_there},
           {"window", &C::window, whole(1, 10'000),
            "side of a window, in tokens; divides the rows of every level that is larger"},
           {"mlp_ratio", &C::mlp_ratio, whole(1, 1'000), "width of an MLP over the hidden size"}}),
      &complete_swin, &swin);
}

}  // namespace stratagem::model
