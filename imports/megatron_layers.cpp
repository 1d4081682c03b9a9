// Reads arguments of attention and of mixtures of experts.
#include "imports/megatron_layers.hpp"

#include <fmt/format.h>

#include <regex>
#include <string>

namespace stratagem::imports {
namespace {

void leave_out(Settings& settings, const std::string& what, const std::string& why) {
  settings.left_out.push_back({"--" + what, why});
}

/// Widths of queries and keys are those of the part that is not turned.
void read_latent(Said& words, Settings& settings) {
  Json latent = Json::object();
  words.copy("kv-lora-rank", latent, "key_rank");
  words.copy("q-lora-rank", latent, "query_rank");
  // What its arguments are where they are not said.
  if (!words.has("kv-lora-rank")) latent.set("key_rank", 32);
  latent.set("rotary", words.number("qk-pos-emb-head-dim").value_or(64));
  latent.set("values", words.number("v-head-dim").value_or(128));
  settings.model.set("head_width", words.number("qk-head-dim").value_or(128));
  settings.model.set("latent", latent);
}

/// "127,0": tokens before and after its own that a token sees.
void read_sight(Said& words, Settings& settings) {
  static const std::regex window(R"((\d{1,8}),0)");
  const std::string size = words.take("window-size").value_or("");
  std::smatch match;
  if (std::regex_match(size, match, window)) {
    settings.model.set("window", std::stoi(match[1]) + 1);
    words.copy("window-attn-skip-freq", settings.model, "full_every");
  } else if (!size.empty()) {
    leave_out(settings, "window-size " + size, "a window is of tokens before a token alone");
  }
  const std::string softmax = words.take("softmax-type").value_or("vanilla");
  if (softmax == "learnable") settings.model.set("sinks", true);
  if (softmax == "off-by-one") leave_out(settings, "softmax-type off-by-one", "sinks are trained");
}

/// Every n-th layer, or a list: "[0]*3+[1]*58".
void read_mixtures(Said& words, Settings& settings) {
  static const std::regex number(R"(\d+)"), list(R"(\[0\]\*(\d{1,5})\+\[1\]\*\d+)");
  const std::string layers = words.take("moe-layer-freq").value_or("");
  std::smatch match;
  if (std::regex_match(layers, number)) {
    words.copy("moe-layer-freq", settings.model, "moe_every");
  } else if (std::regex_match(layers, match, list)) {
    settings.model.set("plain_layers", std::stoi(match[1]));
  } else if (!layers.empty()) {
    leave_out(settings, "moe-layer-freq " + layers,
              "mixtures are every n-th layer, or all after the first");
  }
}

/// All of them together are one MLP, of so many times an expert's width.
void read_shared_experts(Said& words, Settings& settings) {
  const auto together = words.number("moe-shared-expert-intermediate-size");
  if (!together) return;
  const auto own = words.number("moe-ffn-hidden-size");
  const int width = own ? *own : words.number("ffn-hidden-size").value_or(*together);
  if (*together % width == 0) {
    settings.model.set("shared_experts", *together / width);
  } else {
    leave_out(settings, fmt::format("moe-shared-expert-intermediate-size {}", *together),
              "shared experts are as wide as the others");
  }
}

}  // namespace

void read_megatron_heads(Said& words, Settings& settings) {
  const auto groups = words.number("num-query-groups");
  if (words.flag("group-query-attention") && groups) settings.model.set("kv_heads", *groups);
  if (words.flag("qk-layernorm")) settings.model.set("qk_norm", true);
  const auto hidden = words.number("hidden-size"), heads = words.number("num-attention-heads"),
             width = words.number("kv-channels");
  if (words.flag("multi-latent-attention"))
    read_latent(words, settings);
  else if (width && hidden && heads && *width * *heads != *hidden)
    settings.model.set("head_width", *width);
  read_sight(words, settings);
}

void read_megatron_experts(Said& words, Settings& settings) {
  words.copy("num-experts", settings.model, "experts");
  words.copy("moe-router-topk", settings.model, "experts_per_token");
  read_mixtures(words, settings);
  words.copy("moe-ffn-hidden-size", settings.model, "expert_width");
  read_shared_experts(words, settings);
  if (words.take("moe-router-score-function").value_or("softmax") == "sigmoid")
    settings.model.set("router", "sigmoid");
  if (words.flag("moe-router-enable-expert-bias")) settings.model.set("router_bias", true);
  words.copy("expert-model-parallel-size", settings.strategy, "expert");
  if (const auto factor = words.real("moe-expert-capacity-factor"))
    settings.model.set("capacity_factor", *factor);
}

}  // namespace stratagem::imports
