// Builds the Llama graph from its configuration.
#include "model/zoo/llama.hpp"

#include <string>
#include <utility>

#include "model/zoo/all.hpp"
#include "model/zoo/decoder.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/latent_attention.hpp"
#include "model/zoo/prefix.hpp"
#include "model/zoo/transformer_options.hpp"

namespace stratagem::model {

Graph llama(const LlamaConfig& c) {
  const LlamaVariant& variant = c.variant;
  return decoder("llama",
                 {.layers = c.layers,
                  .hidden = c.hidden,
                  .sequence = c.sequence,
                  .vocabulary = c.vocabulary,
                  .batch = c.batch,
                  .type = c.type,
                  .positions = Positions::rotary,
                  .norm = OpKind::rms_norm,
                  .bias = Bias::none,
                  .attention = {.heads = c.heads,
                                .kv_heads = variant.latent.key_rank > 0 ? 0 : c.kv_heads,
                                .sight = variant.sight,
                                .fused = c.fused.attention,
                                .norms = variant.qk_norm,
                                .repeats_keys = variant.repeats_keys,
                                .prefix = c.prefix,
                                .width = variant.head_width,
                                .latent = variant.latent,
                                .cache = variant.task.cache},
                  .mlp = {.inner = c.intermediate,
                          .activation = c.fused.swiglu ? OpKind::swiglu : OpKind::silu,
                          .bias = Bias::none},
                  .experts = c.experts},
                 {.tied = c.tied, .fused_loss = c.fused.loss, .task = variant.task});
}

namespace {

void complete_llama(LlamaConfig& c, const JsonReader& config) {
  check_heads(config, c);
  check_latent(config);
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0)
    config.at("kv_heads").fail("a divisor of heads, " + std::to_string(c.heads));
  if (c.variant.repeats_keys && !c.fused.attention)
    config.at("repeat_keys").fail("false with unfused attention, whose products share keys");
  check_sight(config, c, c.fused.attention);
  check_experts(config, c.experts, c.layers, c.fused.swiglu);
  check_prefix(config, c.fused.attention);
  check_task(config, c, c.fused.attention);
}

}  // namespace

Family llama_family() {
  using C = LlamaConfig;
  using F = LlamaFusions;
  using V = LlamaVariant;
  const auto of_fused = [](bool F::*member) { return within(&C::fused, member); };
  const auto of_variant = [](auto V::*member) { return within(&C::variant, member); };
  const auto size = whole(1, 10'000'000);
  const auto fused = choice<bool>({{"unfused", false}, {"fused", true}});
  return family_of<C>(
      "llama", "Llama 1 to 3, Qwen3, Mixtral, DeepSeek-V3: RMS norms, rotary positions, gated MLPs",
      with_task(with_experts(with_sight(with_sizes<C>(
          {{"intermediate", &C::intermediate, size, "width of the MLP, and of experts",
            must_be_there},
           head_width_option<C>(of_variant(&V::head_width)),
           kv_heads_option<C>(&C::kv_heads),
           qk_norm_option<C>(of_variant(&V::qk_norm)),
           latent_option<C>(of_variant(&V::latent)),
           {"tied", &C::tied, flag(), "logits use the word embedding, or a table of their own"},
           fused_attention_option<C>(of_fused(&F::attention)),
           {"repeat_keys", of_variant(&V::repeats_keys), flag(),
            "keys and values are copied for every query before a fused attention, as some "
            "frameworks do"},
           {"swiglu", of_fused(&F::swiglu), fused,
            "one kernel that keeps both halves of its input, or silu and product, which keep a "
            "tensor more"},
           fused_loss_option<C>(of_fused(&F::loss)),
           prefix_option(&C::prefix)})))),
      &complete_llama, &llama);
}

}  // namespace stratagem::model
