// Builds the GPT graph from its configuration.
#include "model/zoo/gpt.hpp"

#include <string>
#include <utility>

#include "model/zoo/all.hpp"
#include "model/zoo/decoder.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/prefix.hpp"
#include "model/zoo/transformer_options.hpp"

namespace stratagem::model {

Graph gpt(const GptConfig& c) {
  const GptVariant& variant = c.variant;
  const Bias bias = variant.biases ? Bias::added : Bias::none;
  return decoder("gpt",
                 {.layers = c.layers,
                  .hidden = c.hidden,
                  .sequence = c.sequence,
                  .vocabulary = c.vocabulary,
                  .batch = c.batch,
                  .type = c.type,
                  .positions = variant.positions,
                  .norm = variant.norm,
                  .bias = bias,
                  .dropout = c.dropout,
                  .attention = {.heads = c.heads,
                                .kv_heads = variant.kv_heads,
                                .sight = variant.sight,
                                .fused = c.fused_attention,
                                .norms = variant.qk_norm,
                                .prefix = c.prefix,
                                .width = variant.head_width,
                                .cache = variant.task.cache},
                  .mlp = {.inner = c.intermediate > 0 ? c.intermediate : 4 * c.hidden,
                          .activation = c.activation,
                          .bias = bias},
                  .experts = c.experts},
                 {.tied = c.tied, .fused_loss = variant.fused_loss, .task = variant.task});
}

namespace {

void complete_gpt(GptConfig& c, const JsonReader& config) {
  check_heads(config, c);
  if (c.variant.kv_heads > 0 && c.heads % c.variant.kv_heads != 0)
    config.at("kv_heads").fail("a divisor of heads, " + std::to_string(c.heads));
  if (c.variant.kv_heads == c.heads) c.variant.kv_heads = 0;  // as if it were not said
  check_sight(config, c, c.fused_attention);
  check_experts(config, c.experts, c.layers, c.activation == OpKind::swiglu && !c.variant.biases);
  check_prefix(config, c.fused_attention);
  check_task(config, c, c.fused_attention);
}

}  // namespace

Family gpt_family() {
  using C = GptConfig;
  using V = GptVariant;
  const auto of_variant = [](auto V::*member) { return within(&C::variant, member); };
  const auto size = whole(1, 10'000'000);
  return family_of<C>(
      "gpt", "GPT-2, GPT-3, OPT, Nemotron, mixtures of experts: every choice of a decoder is a key",
      with_task(with_experts(with_sight(with_sizes<C>(
          {{"intermediate", &C::intermediate, size, "width of the MLP, and of experts",
            "4 x `hidden`"},
           {"activation", &C::activation,
            choice<OpKind>({{"gelu", OpKind::gelu},
                            {"relu", OpKind::relu},
                            {"squared-relu", OpKind::squared_relu},
                            {"swiglu", OpKind::swiglu}}),
            "of the MLP; swiglu: a gated one, of three matrices, as a `llama` has it"},
           {"norm", of_variant(&V::norm),
            choice<OpKind>({{"layer", OpKind::layer_norm}, {"rms", OpKind::rms_norm}}),
            "layer norms, or RMS norms"},
           {"positions", of_variant(&V::positions),
            choice<Positions>({{"learned", Positions::learned},
                               {"rotary", Positions::rotary},
                               {"none", Positions::none}}),
            "a table that is added to the embeddings, queries and keys that are turned, or "
            "neither"},
           {"biases", of_variant(&V::biases), flag(), "of linear layers"},
           head_width_option<C>(of_variant(&V::head_width)),
           kv_heads_option<C>(of_variant(&V::kv_heads)),
           qk_norm_option<C>(of_variant(&V::qk_norm)),
           {"dropout", &C::dropout, flag(),
            "after the embeddings, on attention probabilities and before residual sums, or "
            "nowhere"},
           fused_attention_option<C>(&C::fused_attention),
           {"tied", &C::tied, flag(), "logits use the word embedding, or a table of their own"},
           fused_loss_option<C>(of_variant(&V::fused_loss)),
           prefix_option(&C::prefix)})))),
      &complete_gpt, &gpt);
}

}  // namespace stratagem::model
