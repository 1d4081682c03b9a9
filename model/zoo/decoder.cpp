// Builds a decoder around the layers of a transformer.
#include "model/zoo/decoder.hpp"

#include <utility>

#include "base/input_error.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/prefix.hpp"

namespace stratagem::model {

Graph decoder(const std::string& name, const TransformerConfig& c, const Head& head) {
  expects(c.attention.prefix == 0 || !c.attention.fused, "a fused attention knows no prefix");
  Builder build(name);
  build.begin_segment("embedding");
  const Embedded start = embedded(build, c);
  const TensorId x = layers(build, c, dropped(build, c, "dropout", start.rows));
  build.begin_segment("head");
  const TensorId y = norm(build, c.norm, "final_norm", x);
  const TensorId words =
      head.tied ? start.words : build.parameter("logits.weight", {c.vocabulary, c.hidden}, c.type);
  const TensorId result = logits(build, y, words);
  Graph graph = std::move(build).finish(
      head.fused_loss ? fused_cross_entropy(build, result, "b s", "vocabulary")
                      : cross_entropy(build, result, "b s", "vocabulary"));
  if (c.attention.prefix > 0) graph = train_prefixes_only(std::move(graph));
  graph.sample_tokens = c.sequence;
  return graph;
}

}  // namespace stratagem::model
