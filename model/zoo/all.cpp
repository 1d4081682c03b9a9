// The table of model families.
#include "model/zoo/all.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/pattern.hpp"
#include "model/freeze.hpp"
#include "model/zoo/evoformer.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "model/zoo/t5.hpp"

namespace stratagem::model {
namespace {

/// A key that may be left out.
void read_flag(const JsonReader& config, const char* key, bool& target) {
  if (const auto flag = config.find(key)) target = flag->boolean();
}

/// A key with two words, of which the first one stands for "yes".
void read_choice(const JsonReader& config, const char* key, const std::string& yes,
                 const std::string& no, bool& target) {
  if (const auto choice = config.find(key)) target = choice->one_of({yes, no}) == yes;
}

std::int64_t size_at(const JsonReader& config, const char* key, std::int64_t most = 10'000'000) {
  return config.at(key).between(1, most);
}

/// A pattern of parameters' names, of which a model has some.
std::string read_pattern(const JsonReader& entry, const Graph& graph) {
  const std::string pattern = entry.text();
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter && matches(tensor.name, pattern)) return pattern;
  }
  entry.fail("a pattern of parameters' names");
}

/// Freezes what the key "frozen" names.
Graph with_frozen(const JsonReader& config, Graph graph) {
  const auto frozen = config.find("frozen");
  if (!frozen) return graph;
  std::vector<std::string> patterns;
  for (const JsonReader& entry : frozen->elements()) patterns.push_back(read_pattern(entry, graph));
  graph = freeze(std::move(graph), [&](const Tensor& parameter) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return matches(parameter.name, pattern); });
  });
  if (!trains_any(graph)) frozen->fail("patterns that leave a parameter to train");
  return graph;
}

/// Trained places before the tokens, where attention is in parts.
std::int64_t read_prefix(const JsonReader& config, bool fused_attention) {
  const auto prefix = config.find("prefix");
  if (!prefix) return 0;
  if (fused_attention) prefix->fail("no prefix with fused attention, whose kernel knows none");
  return prefix->between(1, 1'000'000);
}

/// Keys that are only known where there are experts.
void read_experts(GptConfig& gpt_config, const JsonReader& config) {
  const auto experts = config.find("experts");
  if (!experts) return;
  gpt_config.experts = experts->between(1, 1'000'000);
  if (const auto chosen = config.find("experts_per_token"))
    gpt_config.experts_per_token = chosen->between(1, gpt_config.experts);
  if (const auto factor = config.find("capacity_factor")) {
    gpt_config.capacity_factor = factor->number();
    if (!(gpt_config.capacity_factor > 0 && gpt_config.capacity_factor <= 1e6))
      factor->fail("a number above 0, of at most 1000000");
  }
  if (const auto every = config.find("moe_every"))
    gpt_config.moe_every = every->between(1, gpt_config.layers);
}

Graph build_gpt(const JsonReader& config, std::int64_t batch, DataType type) {
  GptConfig gpt_config{.layers = size_at(config, "layers", 10'000),
                       .hidden = size_at(config, "hidden"),
                       .heads = size_at(config, "heads"),
                       .sequence = size_at(config, "sequence"),
                       .vocabulary = size_at(config, "vocabulary"),
                       .batch = batch,
                       .type = type};
  if (gpt_config.hidden % gpt_config.heads != 0) {
    config.at("heads").fail("a divisor of hidden, " + std::to_string(gpt_config.hidden));
  }
  if (config.has("intermediate")) gpt_config.intermediate = size_at(config, "intermediate");
  if (const auto activation = config.find("activation"))
    gpt_config.activation =
        activation->one_of({"gelu", "relu"}) == "relu" ? OpKind::relu : OpKind::gelu;
  read_flag(config, "dropout", gpt_config.dropout);
  read_flag(config, "tied", gpt_config.tied);
  read_choice(config, "attention", "fused", "unfused", gpt_config.fused_attention);
  read_experts(gpt_config, config);
  gpt_config.prefix = read_prefix(config, gpt_config.fused_attention);
  return with_frozen(config, gpt(gpt_config));
}

Graph build_llama(const JsonReader& config, std::int64_t batch, DataType type) {
  LlamaConfig c{.layers = size_at(config, "layers", 10'000),
                .hidden = size_at(config, "hidden"),
                .heads = size_at(config, "heads"),
                .kv_heads = 0,
                .intermediate = size_at(config, "intermediate"),
                .sequence = size_at(config, "sequence"),
                .vocabulary = size_at(config, "vocabulary"),
                .batch = batch,
                .type = type};
  if (c.hidden % c.heads != 0)
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden));
  c.kv_heads = config.has("kv_heads") ? size_at(config, "kv_heads") : c.heads;
  if (c.heads % c.kv_heads != 0)
    config.at("kv_heads").fail("a divisor of heads, " + std::to_string(c.heads));
  read_flag(config, "tied", c.tied);
  read_choice(config, "attention", "fused", "unfused", c.fused_attention);
  read_choice(config, "swiglu", "fused", "unfused", c.fused_swiglu);
  read_choice(config, "loss", "fused", "unfused", c.fused_loss);
  read_flag(config, "repeat_keys", c.repeats_keys);
  if (c.repeats_keys && !c.fused_attention)
    config.at("repeat_keys").fail("false with unfused attention, whose products share keys");
  c.prefix = read_prefix(config, c.fused_attention);
  return with_frozen(config, llama(c));
}

Graph build_t5(const JsonReader& config, std::int64_t batch, DataType type) {
  T5Config c{.layers = size_at(config, "layers", 10'000),
             .decoder_layers = size_at(config, "decoder_layers", 10'000),
             .hidden = size_at(config, "hidden"),
             .heads = size_at(config, "heads"),
             .intermediate = size_at(config, "intermediate"),
             .sequence = size_at(config, "sequence"),
             .decoder_sequence = size_at(config, "decoder_sequence"),
             .vocabulary = size_at(config, "vocabulary"),
             .batch = batch,
             .type = type};
  if (config.has("head_width")) {
    c.head_width = size_at(config, "head_width");
  } else if (c.hidden % c.heads != 0) {
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden) + ", or head_width");
  }
  read_choice(config, "activation", "gated-gelu", "relu", c.gated);
  read_flag(config, "tied", c.tied);
  read_flag(config, "dropout", c.dropout);
  if (const auto buckets = config.find("bias_buckets")) c.bias_buckets = buckets->between(0, 252);
  if (c.bias_buckets % 4 != 0)
    config.at("bias_buckets").fail("a multiple of 4 (0: no biases by distance)");
  return with_frozen(config, t5(c));
}

/// Widths are AlphaFold2's where the configuration does not say others.
Graph build_evoformer(const JsonReader& config, std::int64_t batch, DataType type) {
  EvoformerConfig c{.layers = config.at("layers").between(1, 10'000),
                    .msa_rows = config.at("msa_rows").between(1, 1'000'000),
                    .residues = config.at("residues").between(1, 1'000'000),
                    .batch = batch,
                    .type = type};
  const auto size = [&](const char* key, std::int64_t& target) {
    if (const auto value = config.find(key)) target = value->between(1, 1'000'000);
  };
  size("msa_width", c.msa_width);
  size("pair_width", c.pair_width);
  size("msa_heads", c.msa_heads);
  size("pair_heads", c.pair_heads);
  size("head_width", c.head_width);
  size("outer_width", c.outer_width);
  if (const auto passes = config.find("passes"))
    c.passes = static_cast<int>(passes->between(1, 1000));
  return with_frozen(config, evoformer(c));
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"gpt", "GPT-2, GPT-3, mixtures of experts: layers, hidden, heads, sequence, vocabulary, ...",
       &build_gpt},
      {"llama",
       "Llama 1 to 3: layers, hidden, heads, kv_heads, intermediate, sequence, vocabulary, ...",
       &build_llama},
      {"t5",
       "T5's encoder and decoder: layers, decoder_layers, hidden, heads, intermediate, sequence, "
       "...",
       &build_t5},
      {"evoformer", "AlphaFold2's trunk: layers, msa_rows, residues, ...", &build_evoformer},
  };
  return table;
}

}  // namespace stratagem::model
