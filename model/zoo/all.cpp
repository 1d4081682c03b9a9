// The table of model families.
#include "model/zoo/all.hpp"

#include "model/zoo/evoformer.hpp"
#include "model/zoo/gpt.hpp"

namespace stratagem::model {
namespace {

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
  const auto size = [&](const char* key, std::int64_t most = 10'000'000) {
    return config.at(key).between(1, most);
  };
  GptConfig gpt_config{.layers = size("layers", 10'000),
                       .hidden = size("hidden"),
                       .heads = size("heads"),
                       .sequence = size("sequence"),
                       .vocabulary = size("vocabulary"),
                       .batch = batch,
                       .type = type};
  if (gpt_config.hidden % gpt_config.heads != 0) {
    config.at("heads").fail("a divisor of hidden, " + std::to_string(gpt_config.hidden));
  }
  if (const auto tied = config.find("tied")) gpt_config.tied = tied->boolean();
  read_experts(gpt_config, config);
  return gpt(gpt_config);
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
  return evoformer(c);
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"gpt", "GPT-2, GPT-3, mixtures of experts: layers, hidden, heads, sequence, vocabulary, ...",
       &build_gpt},
      {"evoformer", "AlphaFold2's trunk: layers, msa_rows, residues, ...", &build_evoformer},
  };
  return table;
}

}  // namespace stratagem::model
