// The table of published models.
#include "model/zoo/presets.hpp"

#include <algorithm>

namespace stratagem::model {
namespace {

const std::vector<Preset> table{
    // Radford et al., Language Models are Unsupervised Multitask Learners, 2019, table 2.
    {"gpt-2-xl", "GPT-2's largest: 1.56B parameters",
     R"({"family": "gpt", "layers": 48, "hidden": 1600, "heads": 25, "sequence": 1024,
         "vocabulary": 50257})"},
    // Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1; the
    // vocabulary is GPT-2's.
    {"gpt-3-175b", "GPT-3's largest: 175B parameters",
     R"({"family": "gpt", "layers": 96, "hidden": 12288, "heads": 96, "sequence": 2048,
         "vocabulary": 50257})"},
    // Devlin et al., BERT, arXiv:1810.04805, section 3; the vocabulary is that of the released
    // uncased model.
    {"bert-large", "BERT's larger one: 336M parameters",
     R"({"family": "bert", "layers": 24, "hidden": 1024, "heads": 16, "sequence": 512,
         "vocabulary": 30522})"},
    // Touvron et al., Llama 2, arXiv:2307.09288; widths from the released config.json files.
    {"llama-2-7b", "Llama 2 7B: 6.74B parameters",
     R"({"family": "llama", "layers": 32, "hidden": 4096, "heads": 32,
         "intermediate": 11008, "sequence": 4096, "vocabulary": 32000, "tied": false})"},
    {"llama-2-13b", "Llama 2 13B: 13.0B parameters",
     R"({"family": "llama", "layers": 40, "hidden": 5120, "heads": 40,
         "intermediate": 13824, "sequence": 4096, "vocabulary": 32000, "tied": false})"},
    {"llama-2-70b", "Llama 2 70B: 69.0B parameters, 8 keys and values",
     R"({"family": "llama", "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8,
         "intermediate": 28672, "sequence": 4096, "vocabulary": 32000, "tied": false})"},
    // Grattafiori et al., The Llama 3 Herd of Models, arXiv:2407.21783, table 3; pre-training
    // began with sequences of 8,192 tokens.
    {"llama-3-8b", "Llama 3 8B: 8.03B parameters, 8 keys and values",
     R"({"family": "llama", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
         "intermediate": 14336, "sequence": 8192, "vocabulary": 128256, "tied": false})"},
    {"llama-3-70b", "Llama 3 70B: 70.6B parameters, 8 keys and values",
     R"({"family": "llama", "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8,
         "intermediate": 28672, "sequence": 8192, "vocabulary": 128256, "tied": false})"},
    {"llama-3-405b", "Llama 3.1 405B: 406B parameters, 8 keys and values",
     R"({"family": "llama", "layers": 126, "hidden": 16384, "heads": 128, "kv_heads": 8,
         "intermediate": 53248, "sequence": 8192, "vocabulary": 128256, "tied": false})"},
    // Yang et al., Qwen3, arXiv:2505.09388, tables 1 and 2; widths from the released config.json
    // files.
    {"qwen3-8b", "Qwen3 8B: 8.19B parameters, 8 keys and values, norms of queries and keys",
     R"({"family": "llama", "layers": 36, "hidden": 4096, "heads": 32, "kv_heads": 8,
         "intermediate": 12288, "sequence": 4096, "vocabulary": 151936, "tied": false,
         "qk_norm": true})"},
    {"qwen3-14b", "Qwen3 14B: 14.8B parameters, 8 keys and values, norms of queries and keys",
     R"({"family": "llama", "layers": 40, "hidden": 5120, "heads": 40, "kv_heads": 8,
         "intermediate": 17408, "sequence": 4096, "vocabulary": 151936, "tied": false,
         "qk_norm": true})"},
    {"qwen3-30b-a3b", "Qwen3 30B-A3B: 128 experts, 8 for each token; 30.5B parameters",
     R"({"family": "llama", "layers": 48, "hidden": 2048, "heads": 32, "head_width": 128,
         "kv_heads": 4, "intermediate": 6144, "sequence": 4096, "vocabulary": 151936,
         "tied": false, "qk_norm": true, "experts": 128, "experts_per_token": 8,
         "expert_width": 768})"},
    {"qwen3-235b-a22b", "Qwen3 235B-A22B: 128 experts, 8 for each token; 235B parameters",
     R"({"family": "llama", "layers": 94, "hidden": 4096, "heads": 64, "head_width": 128,
         "kv_heads": 4, "intermediate": 12288, "sequence": 4096, "vocabulary": 151936,
         "tied": false, "qk_norm": true, "experts": 128, "experts_per_token": 8,
         "expert_width": 1536})"},
    // Parmar et al., Nemotron-4 15B, arXiv:2402.16819, table 1; Nemotron-4 340B,
    // arXiv:2406.11704, table 1.
    {"nemotron-4-15b", "Nemotron-4 15B: squared ReLU, rotary positions, no biases",
     R"({"family": "gpt", "layers": 32, "hidden": 6144, "heads": 48, "kv_heads": 8,
         "sequence": 4096, "vocabulary": 256000, "activation": "squared-relu",
         "positions": "rotary", "biases": false, "dropout": false, "tied": false})"},
    {"nemotron-4-340b", "Nemotron-4 340B: squared ReLU, rotary positions, no biases",
     R"({"family": "gpt", "layers": 96, "hidden": 18432, "heads": 96, "kv_heads": 8,
         "sequence": 4096, "vocabulary": 256000, "activation": "squared-relu",
         "positions": "rotary", "biases": false, "dropout": false, "tied": false})"},
    // DeepSeek-AI, DeepSeek-V3, arXiv:2412.19437, section 4.2, and the released config.json;
    // without the module that predicts a second token. Kimi Team, Kimi K2, arXiv:2507.20534, table
    // 2.
    {"deepseek-v3", "DeepSeek-V3: latent attention, 256 experts, 8 for each token; 671B parameters",
     R"({"family": "llama", "layers": 61, "hidden": 7168, "heads": 128, "head_width": 128,
         "latent": {"key_rank": 512, "query_rank": 1536, "rotary": 64, "values": 128},
         "intermediate": 18432, "sequence": 4096, "vocabulary": 129280, "tied": false,
         "experts": 256, "experts_per_token": 8, "expert_width": 2048, "shared_experts": 1,
         "plain_layers": 3, "router": "sigmoid", "router_bias": true})"},
    {"kimi-k2", "Kimi K2: latent attention, 384 experts, 8 for each token; 1.03T parameters",
     R"({"family": "llama", "layers": 61, "hidden": 7168, "heads": 64, "head_width": 128,
         "latent": {"key_rank": 512, "query_rank": 1536, "rotary": 64, "values": 128},
         "intermediate": 18432, "sequence": 4096, "vocabulary": 163840, "tied": false,
         "experts": 384, "experts_per_token": 8, "expert_width": 2048, "shared_experts": 1,
         "plain_layers": 1, "router": "sigmoid", "router_bias": true})"},
    // OpenAI, gpt-oss-120b & gpt-oss-20b model card, arXiv:2508.10925, section 2, and the released
    // config.json files.
    {"gpt-oss-20b", "GPT-OSS 20B: 32 experts, windows and sinks; 20.9B parameters",
     R"({"family": "gpt", "layers": 24, "hidden": 2880, "heads": 64, "head_width": 64,
         "kv_heads": 8, "intermediate": 2880, "sequence": 4096, "vocabulary": 201088,
         "norm": "rms", "positions": "rotary", "activation": "swiglu", "dropout": false,
         "tied": false, "attention": "fused", "window": 128, "full_every": 2, "sinks": true,
         "experts": 32, "experts_per_token": 4, "router_bias": true})"},
    {"gpt-oss-120b", "GPT-OSS 120B: 128 experts, windows and sinks; 117B parameters",
     R"({"family": "gpt", "layers": 36, "hidden": 2880, "heads": 64, "head_width": 64,
         "kv_heads": 8, "intermediate": 2880, "sequence": 4096, "vocabulary": 201088,
         "norm": "rms", "positions": "rotary", "activation": "swiglu", "dropout": false,
         "tied": false, "attention": "fused", "window": 128, "full_every": 2, "sinks": true,
         "experts": 128, "experts_per_token": 4, "router_bias": true})"},
    // Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv:2010.11929, table 1; 224 x 224
    // pixels and the patches that the names say.
    {"vit-large", "ViT-L/16: 304M parameters",
     R"({"family": "vit", "layers": 24, "hidden": 1024, "heads": 16, "image": 224, "patch": 16})"},
    {"vit-huge", "ViT-H/14: 632M parameters",
     R"({"family": "vit", "layers": 32, "hidden": 1280, "heads": 16, "image": 224, "patch": 14})"},
    // Liu et al., Swin Transformer, arXiv:2103.14030, section 3.3.
    {"swin-large", "Swin-L: 197M parameters",
     R"({"family": "swin", "depths": [2, 2, 18, 2], "hidden": 192, "heads": 6, "image": 224,
         "window": 7})"},
    // Jiang et al., Mixtral of Experts, arXiv:2401.04088, table 1.
    {"mixtral-8x7b", "Mixtral 8x7B: a Llama with 8 experts, 2 for each token; 47B parameters",
     R"({"family": "llama", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
         "intermediate": 14336, "sequence": 32768, "vocabulary": 32000, "tied": false,
         "experts": 8, "experts_per_token": 2})"},
};

}  // namespace

const std::vector<Preset>& presets() { return table; }

JsonReader with_preset(const JsonReader& model) {
  const auto named = model.find("preset");
  if (!named) return model;
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  const std::string name = named->one_of(names);
  const auto preset = std::ranges::find(presets(), name, &Preset::name);
  const JsonReader keys = JsonReader::from_text(preset->keys, model.file(), model.path());
  if (const auto family = model.find("family")) (void)family->one_of({keys.at("family").text()});
  return model.over(keys);
}

}  // namespace stratagem::model
