// The table of model families.
#include "model/zoo/all.hpp"

#include "model/zoo/gpt.hpp"

namespace stratagem::model {
namespace {

Graph build_gpt(const JsonReader& config, std::int64_t batch, DataType type) {
  const auto size = [&](const char* key, std::int64_t most = 10'000'000) {
    return config.at(key).between(1, most);
  };
  const GptConfig gpt_config{.layers = size("layers", 10'000),
                             .hidden = size("hidden"),
                             .heads = size("heads"),
                             .sequence = size("sequence"),
                             .vocabulary = size("vocabulary"),
                             .batch = batch,
                             .type = type};
  if (gpt_config.hidden % gpt_config.heads != 0) {
    config.at("heads").fail("a divisor of hidden, " + std::to_string(gpt_config.hidden));
  }
  return gpt(gpt_config);
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"gpt", "GPT-2, GPT-3: layers, hidden, heads, sequence, vocabulary", &build_gpt},
  };
  return table;
}

}  // namespace stratagem::model
