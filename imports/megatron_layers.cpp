// Reads arguments of attention and of mixtures of experts.
#include "imports/megatron_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "imports/experts.hpp"

namespace stratagem::imports {
namespace {

void leave_out(const Said& words, Settings& settings, const std::string& what,
               const std::string& why) {
  settings.left_out.push_back({words.as_written(what), why});
}

/// Widths of queries and keys are those of the part that is not turned. `--qk-layernorm` is the
/// norm of the narrow vectors there, and heads share no keys.
void read_latent(const LayerKind& kind, Said& words, Settings& settings) {
  if (!kind.llama)
    return leave_out(words, settings, "multi-latent-attention",
                     "with norms, MLPs or positions other than a Llama's there is none");
  Json latent = Json::object();
  latent.set("key_rank", words.number("kv-lora-rank").value_or(32));
  words.copy("q-lora-rank", latent, "query_rank");
  latent.set("rotary", words.number("qk-pos-emb-head-dim").value_or(64));
  latent.set("values", words.number("v-head-dim").value_or(128));
  settings.model.set("head_width", words.number("qk-head-dim").value_or(128));
  settings.model.set("latent", latent);
  if (!words.flag("qk-layernorm"))
    settings.assumed.push_back({"--qk-layernorm", "narrow vectors are normalised"});
  for (const char* unused : {"group-query-attention", "num-query-groups", "kv-channels"}) {
    if (const auto value = words.take(unused))
      settings.no_matter.push_back(
          words.as_written(unused + std::string(value->empty() ? "" : " ") + *value));
  }
}

void read_heads(Said& words, Settings& settings) {
  const auto groups = words.number("num-query-groups");
  if (words.flag("group-query-attention") && groups) settings.model.set("kv_heads", *groups);
  if (words.flag("qk-layernorm")) settings.model.set("qk_norm", true);
  const auto hidden = words.number("hidden-size"), heads = words.number("num-attention-heads"),
             width = words.number("kv-channels");
  if (width && hidden && heads && *width * *heads != *hidden)
    settings.model.set("head_width", *width);
}

bool is_number(const std::string& text) {
  static const std::regex number(R"(\d{1,8})");
  return std::regex_match(text, number);
}

/// "127,0": tokens before and after its own that a token sees; every n-th layer sees all.
void read_window(Said& words, Settings& settings) {
  static const std::regex window(R"((\d{1,8}),0)");
  const std::string size = words.take("window-size").value_or("");
  const std::string full = words.take("window-attn-skip-freq").value_or("");
  std::smatch match;
  if (!std::regex_match(size, match, window) || (!full.empty() && !is_number(full)))
    return leave_out(words, settings, "window-size " + size + (full.empty() ? "" : " with " + full),
                     "windows are of tokens before a token, in all layers but every n-th");
  if (full == "1") return;  // all layers see all tokens
  const int tokens = std::stoi(match[1]) + 1;
  if (const auto all = words.number("seq-length"); all && tokens >= *all) return;
  settings.model.set("window", tokens);
  if (!full.empty()) settings.model.set("full_every", std::stoi(full));
}

void read_sight(const LayerKind& kind, Said& words, Settings& settings) {
  const std::string softmax = words.take("softmax-type").value_or("vanilla");
  settings.passes_keys = kind.fused_attention && softmax == "vanilla" && !words.has("window-size");
  if (kind.fused_attention) {
    if (words.has("window-size")) read_window(words, settings);
    if (softmax == "learnable") settings.model.set("sinks", true);
    if (softmax == "off-by-one")
      leave_out(words, settings, "softmax-type " + softmax, "sinks are trained");
    return;
  }
  const std::string why = "attention in parts has neither windows nor sinks";
  if (const auto size = words.take("window-size"))
    leave_out(words, settings, "window-size " + *size, why);
  if (softmax != "vanilla") leave_out(words, settings, "softmax-type " + softmax, why);
}

/// Whether each layer is a mixture, of a list such as "[0]*3+[1]*58"; empty if it is none.
std::vector<bool> mixtures_in(const std::string& list) {
  static const std::regex part(R"(\[([01](?:,[01])*)\](?:\*(\d{1,5}))?(\+|$))");
  std::vector<bool> layers;
  auto from = list.begin();
  for (std::smatch match; from != list.end(); from = match[0].second) {
    if (!std::regex_search(from, list.end(), match, part, std::regex_constants::match_continuous))
      return {};
    const int times = match[2].matched ? std::stoi(match[2]) : 1;
    for (int i = 0; i < times; ++i) {
      for (const char one : match[1].str())
        if (one != ',') layers.push_back(one == '1');
    }
  }
  return layers;
}

/// "N": layers 1, N + 1, ... are mixtures; or a list.
void read_mixtures(Said& words, Settings& settings) {
  const std::string layers = words.take("moe-layer-freq").value_or("1");
  const auto number = words.number("num-layers");
  if (layers == "1") return;
  std::vector<bool> mixtures = mixtures_in(layers);
  if (is_number(layers) && number) {
    const int every = std::max(1, std::stoi(layers));
    for (int layer = 0; layer < *number; ++layer) mixtures.push_back(layer % every == 0);
  }
  const auto first = std::ranges::find(mixtures, true);
  const auto plain = static_cast<int>(first - mixtures.begin());
  const bool one_run = std::find(first, mixtures.end(), false) == mixtures.end();
  if (!mixtures.empty() && number == static_cast<int>(mixtures.size()) && one_run &&
      first != mixtures.end()) {
    if (plain > 0) settings.model.set("plain_layers", plain);
  } else if (is_number(layers)) {
    settings.model.set("moe_every", std::stoi(layers));
    leave_out(words, settings, "moe-layer-freq " + layers,
              "mixtures are layers " + layers + ", 2 x " + layers + ", ..., not 1, 1 + " + layers +
                  ", ...");
  } else {
    leave_out(words, settings, "moe-layer-freq " + layers,
              "mixtures are every n-th layer, or all after the first");
  }
}

void read_expert_tensor_ranks(const LayerKind& kind, Said& words, Settings& settings) {
  const int tensor = words.number("tensor-model-parallel-size").value_or(1);
  const int own = words.number("expert-tensor-parallel-size").value_or(tensor);
  const int ranks = words.number("expert-model-parallel-size").value_or(1);
  if (own == tensor) return;
  if (own == 1) return share_out_experts(kind.gated, ranks, tensor, settings);
  leave_out(words, settings, fmt::format("expert-tensor-parallel-size {}", own),
            "tensor ranks divide experts as they divide MLPs, or have them whole");
}

/// All of them together are one MLP, of so many times an expert's width.
void read_shared_experts(Said& words, Settings& settings) {
  const auto together = words.number("moe-shared-expert-intermediate-size");
  if (!together) return;
  auto width = words.number("moe-ffn-hidden-size");
  if (!width) width = words.number("ffn-hidden-size");
  if (width && *together % *width == 0) {
    settings.model.set("shared_experts", *together / *width);
  } else {
    leave_out(words, settings, fmt::format("moe-shared-expert-intermediate-size {}", *together),
              "shared experts are as wide as the others");
  }
}

}  // namespace

void read_megatron_heads(const LayerKind& kind, Said& words, Settings& settings) {
  words.flag("multi-latent-attention") ? read_latent(kind, words, settings)
                                       : read_heads(words, settings);
  read_sight(kind, words, settings);
}

void read_megatron_experts(const LayerKind& kind, Said& words, Settings& settings) {
  words.copy("expert-model-parallel-size", settings.strategy, "expert");
  if (!words.has("num-experts")) {
    for (const char* unused : {"moe-router-topk", "moe-layer-freq", "moe-ffn-hidden-size",
                               "moe-shared-expert-intermediate-size", "moe-router-score-function",
                               "moe-router-enable-expert-bias", "moe-expert-capacity-factor",
                               "expert-tensor-parallel-size"}) {
      if (words.take(unused)) settings.no_matter.push_back(words.as_written(unused));
    }
    return;
  }
  read_expert_tensor_ranks(kind, words, settings);
  words.copy("num-experts", settings.model, "experts");
  settings.model.set("experts_per_token", words.number("moe-router-topk").value_or(2));
  if (!words.has("moe-router-topk"))
    settings.assumed.push_back({"--moe-router-topk", "2, Megatron-LM's default"});
  // Megatron-Core, experts.py: weighted_bias_swiglu_impl.
  if (kind.gated && !kind.biases) settings.model.set("weigh", "activation");
  read_mixtures(words, settings);
  words.copy("moe-ffn-hidden-size", settings.model, "expert_width");
  read_shared_experts(words, settings);
  if (words.take("moe-router-score-function").value_or("softmax") == "sigmoid")
    settings.model.set("router", "sigmoid");
  if (words.flag("moe-router-enable-expert-bias")) settings.model.set("router_bias", true);
  if (const auto factor = words.real("moe-expert-capacity-factor"))
    settings.model.set("capacity_factor", *factor);
}

}  // namespace stratagem::imports
