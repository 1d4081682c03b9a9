// Builds the BERT graph from its configuration.
#include "model/zoo/bert.hpp"

#include <string>
#include <utility>

#include "model/operator_kinds.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/transformer.hpp"
#include "model/zoo/transformer_options.hpp"

namespace stratagem::model {
namespace {

/// Sentences that a sample may have, and classes of whether they follow each other.
constexpr std::int64_t sentences = 2;

TransformerConfig layers_of(const BertConfig& c) {
  return {.layers = c.layers,
          .hidden = c.hidden,
          .sequence = c.sequence,
          .vocabulary = c.vocabulary,
          .batch = c.batch,
          .type = c.type,
          .norms = c.norms,
          .dropout = c.dropout,
          .attention = {.heads = c.heads, .sight = {.causal = false}, .fused = c.fused_attention},
          .mlp = {.inner = c.intermediate > 0 ? c.intermediate : 4 * c.hidden},
          .experts = {}};
}

class Bert {
 public:
  explicit Bert(const BertConfig& config) : c_(config), of_(layers_of(config)), build_("bert") {}

  Graph build() && {
    build_.begin_segment("embedding");
    const TensorId types = c_.next_sentence ? build_.tensor("token_types", {c_.batch, c_.sequence},
                                                            DataType::int64, Role::input)
                                            : -1;
    const Embedded start = embedded(build_, of_);
    TensorId x = c_.next_sentence ? with_types(start.rows, types) : start.rows;
    if (c_.norms == NormPlace::after) x = norm(build_, of_.norm, "norm", x);
    x = layers(build_, of_, dropped(build_, of_, "dropout", x));
    build_.begin_segment("head");
    if (c_.norms == NormPlace::before) x = norm(build_, of_.norm, "final_norm", x);
    const TensorId words = loss_of_words(x, start.words);
    return std::move(build_).finish(c_.next_sentence ? plus_loss_of_sentences(words, x) : words);
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }

  TensorId with_types(TensorId x, TensorId types) {
    const TensorId table = build_.parameter("token_types.table", {sentences, c_.hidden}, c_.type);
    const TensorId rows = activation("token_types.rows", build_[x].shape);
    build_.add(OpKind::embedding, "token_types.lookup", "b s, types^ h -> b s h", {types, table},
               {rows});
    const TensorId sum = activation("typed", build_[x].shape);
    build_.add(OpKind::add, "add_token_types", "b s h, b s h -> b s h", {x, rows}, {sum});
    return sum;
  }

  TensorId bent(OpKind kind, const std::string& name, TensorId x, const std::string& dims) {
    const TensorId y = activation(name + ".out", build_[x].shape);
    build_.add(kind, name, dims + " -> " + dims, {x}, {y});
    return y;
  }

  /// `words`: the table of the embeddings.
  TensorId loss_of_words(TensorId x, TensorId words) {
    if (!c_.tied) words = build_.parameter("logits.weight", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId dense =
        linear(build_, tokens(c_.batch, c_.sequence), "words.dense", x, c_.hidden, Bias::added);
    const TensorId y =
        norm(build_, of_.norm, "words.norm", bent(OpKind::gelu, "words.gelu", dense, "b s h"));
    return cross_entropy(build_, with_bias(build_, logits(build_, y, words)), "b s", "vocabulary");
  }

  /// Added to every token's loss, so that the mean over tokens is the sum of both means.
  TensorId plus_loss_of_sentences(TensorId of_words, TensorId x) {
    const Rows samples{.dims = "b", .shape = {c_.batch}};
    const TensorId first = activation("pooler.first", {c_.batch, c_.hidden});
    build_.add(operator_named("first_token"), "pooler.first", "b s^ h -> b h", {x}, {first});
    const TensorId dense = linear(build_, samples, "pooler.dense", first, c_.hidden, Bias::added);
    const TensorId pooled = bent(operator_named("tanh"), "pooler.tanh", dense, "b h");
    const TensorId classes = linear(build_, samples, "sentences", pooled, sentences, Bias::added);
    const TensorId of_sentences = cross_entropy(
        build_, classes, "b", "classes", {.loss = "sentences.loss", .labels = "sentences.labels"});
    const TensorId sum =
        build_.tensor("both_losses", build_[of_words].shape, DataType::fp32, Role::activation);
    build_.add(OpKind::add, "both_losses", "b s, b -> b s", {of_words, of_sentences}, {sum});
    return sum;
  }

  const BertConfig& c_;
  TransformerConfig of_;
  Builder build_;
};

}  // namespace

Graph bert(const BertConfig& config) {
  Graph graph = Bert(config).build();
  graph.sample_tokens = config.sequence;
  return graph;
}

namespace {

void complete_bert(BertConfig& c, const JsonReader& config) { check_heads(config, c); }

}  // namespace

Family bert_family() {
  using C = BertConfig;
  const auto size = whole(1, 10'000'000);
  return family_of<C>(
      "bert", "BERT as published and as Megatron-LM has it: an encoder with two losses",
      with_sizes<C>(
          {{"intermediate", &C::intermediate, size, "width of the MLP", "4 x `hidden`"},
           {"norms", &C::norms,
            choice<NormPlace>({{"after", NormPlace::after}, {"before", NormPlace::before}}),
            "after the residual sums, as published, or before attention and MLP, as in "
            "Megatron-LM"},
           {"dropout", &C::dropout, flag(),
            "after the embeddings, on attention probabilities and before residual sums, or "
            "nowhere"},
           fused_attention_option<C>(&C::fused_attention),
           {"tied", &C::tied, flag(), "logits use the word embedding, or a table of their own"},
           {"next_sentence", &C::next_sentence, flag(),
            "samples have two sentences, whose tokens have types; the first token also tells "
            "whether the second sentence follows the first"}}),
      &complete_bert, &bert);
}

}  // namespace stratagem::model
