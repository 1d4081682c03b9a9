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
    // Yang et al., Qwen3, arXiv:2505.09388, table 1; widths from the released config.json files.
    {"qwen3-8b", "Qwen3 8B: 8.19B parameters, 8 keys and values, norms of queries and keys",
     R"({"family": "llama", "layers": 36, "hidden": 4096, "heads": 32, "kv_heads": 8,
         "intermediate": 12288, "sequence": 4096, "vocabulary": 151936, "tied": false,
         "qk_norm": true})"},
    {"qwen3-14b", "Qwen3 14B: 14.8B parameters, 8 keys and values, norms of queries and keys",
     R"({"family": "llama", "layers": 40, "hidden": 5120, "heads": 40, "kv_heads": 8,
         "intermediate": 17408, "sequence": 4096, "vocabulary": 151936, "tied": false,
         "qk_norm": true})"},
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
  const JsonReader keys = JsonReader::from_text(preset->keys, "preset " + name);
  if (const auto family = model.find("family")) (void)family->one_of({keys.at("family").text()});
  return model.over(keys);
}

}  // namespace stratagem::model
