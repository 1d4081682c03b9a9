// Builds a decoder around the layers of a transformer.
#include "model/zoo/decoder.hpp"

#include <utility>

#include "base/input_error.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/prefix.hpp"
#include "model/zoo/scalar_head.hpp"

namespace stratagem::model {

namespace {

/// Probabilities of the word after the last token. Whoever draws one needs all of them, so tensor
/// ranks gather their logits.
TensorId next_word(Builder& build, TensorId x, TensorId words) {
  const TensorId all = logits(build, last_token(build, x), words, "b");
  const TensorId drawn =
      build.tensor("probabilities", build[all].shape, DataType::fp32, Role::activation);
  build.add(OpKind::softmax, "probabilities", "b vocabulary^ -> b vocabulary^", {all}, {drawn});
  return drawn;
}

/// What follows the last norm.
TensorId predicted(Builder& build, const TransformerConfig& c, const Head& head, TensorId x,
                   TensorId table) {
  if (head.task.predicts == Predicts::values) return loss_of_values(build, x);
  if (head.task.predicts == Predicts::reward) return loss_of_rewards(build, x, head.task.answers);
  const TensorId words =
      head.tied ? table : build.parameter("logits.weight", {c.vocabulary, c.hidden}, c.type);
  if (head.task.cache.room > 0) return next_word(build, x, words);
  const TensorId result = logits(build, x, words, "b s");
  return head.fused_loss ? fused_cross_entropy(build, result, "b s", "vocabulary")
                         : cross_entropy(build, result, "b s", "vocabulary");
}

}  // namespace

Graph decoder(const std::string& name, const TransformerConfig& c, const Head& head) {
  expects(c.attention.prefix == 0 || !c.attention.fused, "a fused attention knows no prefix");
  Builder build(name);
  build.begin_segment("embedding");
  const Embedded start = embedded(build, c);
  const TensorId x = layers(build, c, dropped(build, c, "dropout", start.rows));
  build.begin_segment("head");
  const TensorId y = norm(build, c.norm, "final_norm", x);
  const TensorId result = predicted(build, c, head, y, start.words);
  Graph graph = std::move(build).finish(result);
  if (c.attention.prefix > 0) graph = train_prefixes_only(std::move(graph));
  graph.sample_tokens = c.sequence;
  return graph;
}

}  // namespace stratagem::model
