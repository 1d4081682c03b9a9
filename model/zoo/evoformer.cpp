// Builds the Evoformer block by block.
#include "model/zoo/evoformer.hpp"

#include <string>

#include "model/builder.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/axial.hpp"
#include "model/zoo/cross_entropy.hpp"

namespace stratagem::model {
namespace {

constexpr std::int64_t msa_features = 49;
constexpr std::int64_t pair_features = 65;
constexpr std::int64_t distance_bins = 64;

class Evoformer {
 public:
  explicit Evoformer(const EvoformerConfig& config)
      : c_(config), build_("evoformer"), axial_(build_) {}

  Graph build() && {
    inputs();
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
      build_.begin_segment("blocks." + std::to_string(layer));
      row_attention();
      column_attention();
      msa_ = axial_.transition("msa_transition", msa_);
      outer_product_mean();
      msa_ = axial_.unary(OpKind::identity, "msa_border", msa_);
      triangle_multiplication("triangle_outgoing", true);
      triangle_multiplication("triangle_incoming", false);
      triangle_attention("triangle_starting", Along::second, pair_.first);
      triangle_attention("triangle_ending", Along::first, pair_.second);
      pair_ = axial_.transition("pair_transition", pair_);
    }
    const TensorId recycled = pair_.tensor;
    Graph graph = std::move(build_).finish(head());
    graph.sample_tokens = c_.residues;
    graph.forward_repeats = c_.passes;
    graph.recycled = {{recycled, previous_}};
    return graph;
  }

 private:
  Plane msa_plane(const std::string& name, std::int64_t width, Role role) {
    return {build_.tensor(name, {c_.batch, c_.msa_rows, c_.residues, width}, c_.type, role), "rows",
            "i"};
  }
  Plane pair_plane(const std::string& name, std::int64_t width, Role role) {
    return {build_.tensor(name, {c_.batch, c_.residues, c_.residues, width}, c_.type, role), "i",
            "j"};
  }

  void inputs() {
    build_.begin_segment("input");
    msa_ = axial_.linear("msa", msa_plane("msa_features", msa_features, Role::input), c_.msa_width);
    const Plane positions = axial_.linear(
        "pair", pair_plane("pair_features", pair_features, Role::input), c_.pair_width);
    const Plane previous = pair_plane("previous_pair", c_.pair_width, Role::input);
    previous_ = previous.tensor;
    pair_ = axial_.sum("pair.recycled", axial_.norm("pair.recycled_norm", previous), positions);
  }

  /// Algorithm 7.
  void row_attention() {
    const Plane z = axial_.norm("row_attention.pair_bias.norm", pair_);
    const TensorId bias = axial_.pair_bias("row_attention.pair_bias", z, c_.msa_heads);
    const Plane y = axial_.gated_attention(
        "row_attention", axial_.norm("row_attention.norm", msa_), Along::second,
        {.count = c_.msa_heads, .width = c_.head_width}, bias, "i t");
    msa_ = axial_.sum("row_attention.residual", axial_.dropout("row_attention.dropout", y, "rows"),
                      msa_);
  }

  /// Algorithm 8.
  void column_attention() {
    const Plane y = axial_.gated_attention("column_attention",
                                           axial_.norm("column_attention.norm", msa_), Along::first,
                                           {.count = c_.msa_heads, .width = c_.head_width}, -1, "");
    msa_ = axial_.sum("column_attention.residual", y, msa_);
  }

  /// Algorithm 10; the mean's division is part of the product.
  void outer_product_mean() {
    const std::int64_t o = c_.outer_width;
    const Plane m = axial_.norm("outer_product.norm", msa_);
    const Plane left = axial_.linear("outer_product.left", m, o);
    const Plane right = axial_.linear("outer_product.right", m, o);
    const TensorId outer = axial_.activation("outer_product.product",
                                             {c_.batch, c_.residues, c_.residues, o, o}, c_.type);
    build_.add(OpKind::contraction, "outer_product.product",
               "b rows+ i c, b rows+ j d -> b i j c d", {left.tensor, right.tensor}, {outer});
    const TensorId weight =
        build_.parameter("outer_product.projection.weight", {c_.pair_width, o, o}, c_.type);
    const TensorId bias =
        build_.parameter("outer_product.projection.bias", {c_.pair_width}, c_.type);
    const Plane flat = pair_plane("outer_product.projected", c_.pair_width, Role::activation);
    build_.add(OpKind::contraction, "outer_product.projection", "b i j c+ d+, n c+ d+ -> b i j n",
               {outer, weight}, {flat.tensor});
    const Plane y = pair_plane("outer_product.out", c_.pair_width, Role::activation);
    build_.add(OpKind::bias_add, "outer_product.bias_add", "b i j n, n -> b i j n",
               {flat.tensor, bias}, {y.tensor});
    pair_ = axial_.sum("outer_product.residual", y, pair_);
  }

  /// sigmoid(W_g z + b_g) * (W z + b)
  Plane gated(const std::string& name, const Plane& z) {
    const Plane gate = axial_.unary(OpKind::sigmoid, name + ".gate.sigmoid",
                                    axial_.linear(name + ".gate", z, c_.pair_width));
    return axial_.product(name + ".gated", axial_.linear(name, z, c_.pair_width), gate);
  }

  /// Algorithms 11 and 12: sums over the third corner k of all triangles, along edges i-k and j-k
  /// (outgoing) or k-i and k-j (incoming).
  void triangle_multiplication(const std::string& name, bool outgoing) {
    const Plane z = axial_.norm(name + ".norm", pair_);
    const Plane a = gated(name + ".left", z);
    const Plane b = gated(name + ".right", z);
    const Plane triangles = pair_plane(name + ".triangles", c_.pair_width, Role::activation);
    build_.add(OpKind::contraction, name + ".triangles",
               outgoing ? "b i k+ c, b j k+ c -> b i j c" : "b k+ i c, b k+ j c -> b i j c",
               {a.tensor, b.tensor}, {triangles.tensor});
    const Plane projected = axial_.linear(
        name + ".projection", axial_.norm(name + ".triangles_norm", triangles), c_.pair_width);
    const Plane gate = axial_.unary(OpKind::sigmoid, name + ".gate.sigmoid",
                                    axial_.linear(name + ".gate", z, c_.pair_width));
    const Plane y = axial_.product(name + ".gated", projected, gate);
    pair_ = axial_.sum(name + ".residual", axial_.dropout(name + ".dropout", y, "i"), pair_);
  }

  /// Algorithms 13 and 14: edge i-j attends to edges i-t with bias j-t, or to t-j with bias t-i.
  void triangle_attention(const std::string& name, Along along, const std::string& shared) {
    const Plane z = axial_.norm(name + ".norm", pair_);
    const TensorId bias = axial_.pair_bias(name + ".pair_bias", z, c_.pair_heads);
    const Plane y =
        axial_.gated_attention(name, z, along, {.count = c_.pair_heads, .width = c_.head_width},
                               bias, along == Along::second ? "j t" : "t i");
    pair_ = axial_.sum(name + ".residual", axial_.dropout(name + ".dropout", y, shared), pair_);
  }

  TensorId head() {
    build_.begin_segment("head");
    const Plane logits = axial_.linear("distogram", pair_, distance_bins);
    return cross_entropy(build_, logits.tensor, "b i j", "bins");
  }

  const EvoformerConfig& c_;
  Builder build_;
  Axial axial_;
  Plane msa_, pair_;
  TensorId previous_ = -1;
};

}  // namespace

Graph evoformer(const EvoformerConfig& config) { return Evoformer(config).build(); }

/// Widths are AlphaFold2's where the configuration does not say others.
Family evoformer_family() {
  using C = EvoformerConfig;
  const auto size = whole(1);
  return family_of<C>(
      "evoformer",
      "AlphaFold2's trunk: axial attention over aligned sequences and pairs of residues",
      {{"layers", &C::layers, whole(1, 10'000), "blocks", must_be_there},
       {"msa_rows", &C::msa_rows, size, "aligned sequences", must_be_there},
       {"residues", &C::residues, size, "residues", must_be_there},
       {"msa_width", &C::msa_width, size, "width of the aligned sequences"},
       {"pair_width", &C::pair_width, size, "width of the pairs of residues"},
       {"msa_heads", &C::msa_heads, size, "heads of attentions over the aligned sequences"},
       {"pair_heads", &C::pair_heads, size, "heads of attentions over the pairs"},
       {"head_width", &C::head_width, size, "width of a head"},
       {"outer_width", &C::outer_width, size, "width of the factors of the outer product"},
       {"passes", &C::passes, whole(1, 1000),
        "forward passes before the one backward pass: recycling (the schedule `3f1b` runs three)"}},
      nullptr, &evoformer);
}

}  // namespace stratagem::model
