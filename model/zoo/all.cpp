// The table of model families.
#include "model/zoo/all.hpp"

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

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"gpt", "GPT-2, GPT-3, mixtures of experts: layers, hidden, heads, sequence, vocabulary, ...",
       &build_gpt},
  };
  return table;
}

}  // namespace stratagem::model
