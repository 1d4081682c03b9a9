// The table of published models.
#include "model/zoo/presets.hpp"

#include <algorithm>

namespace stratagem::model {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table{
      // Jiang et al., Mixtral of Experts, arXiv:2401.04088, table 1.
      {"mixtral-8x7b", "Mixtral 8x7B: a Llama with 8 experts, 2 for each token; 47B parameters",
       R"({"family": "llama", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
           "intermediate": 14336, "sequence": 32768, "vocabulary": 32000, "tied": false,
           "experts": 8, "experts_per_token": 2})"},
  };
  return table;
}

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
