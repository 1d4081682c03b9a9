// The table of model families, and what they say of their keys together.
#include "model/zoo/all.hpp"

#include <algorithm>
#include <utility>

#include "base/pattern.hpp"
#include "base/table.hpp"
#include "model/freeze.hpp"
#include "model/zoo/presets.hpp"

namespace stratagem::model {
namespace {

/// A pattern of parameters' names, of which a model has some.
std::string read_pattern(const JsonReader& entry, const Graph& graph) {
  const std::string pattern = entry.text();
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter && matches(tensor.name, pattern)) return pattern;
  }
  entry.fail("a pattern of parameters' names");
}

/// Freezes what the key "frozen" names.
std::shared_ptr<const Graph> frozen(const JsonReader& config, std::shared_ptr<const Graph> graph) {
  const auto named = config.find("frozen");
  if (!named) return graph;
  std::vector<std::string> patterns;
  for (const JsonReader& entry : named->elements()) patterns.push_back(read_pattern(entry, *graph));
  Graph rest = freeze(*graph, [&](const Tensor& parameter) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return matches(parameter.name, pattern); });
  });
  if (!trains_any(rest)) named->fail("patterns that leave a parameter to train");
  return std::make_shared<const Graph>(std::move(rest));
}

}  // namespace

Family with_frozen(Family family) {
  family.options.push_back({list_of<std::string>(text()).values(), "frozen",
                            "patterns of names of parameters that are not trained (`*` is any "
                            "text): no gradients, no states, nothing to reduce",
                            "none"});
  family.build = [build = family.build](const JsonReader& config, std::int64_t batch,
                                        const NumberTypes& types) {
    return frozen(config, build(config, batch, types));
  };
  return family;
}

// clang-format off
STRATAGEM_TABLE(families, Family,
    gpt_family,
    llama_family,
    bert_family,
    t5_family,
    evoformer_family)
// clang-format on

Json schema_of_models() {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Json>> keys;  // each with what families say of it
  for (const Family& family : families()) {
    names.push_back(family.name);
    for (const OptionText& option : family.options) {
      auto key = std::ranges::find(keys, option.key, &std::pair<std::string, Json>::first);
      if (key == keys.end()) key = keys.insert(key, {option.key, Json::array()});
      key->second.push(schema_of(option).set("title", family.name));
    }
  }
  Json published = Json::array();
  for (const Preset& preset : presets()) published.push(preset.name);
  const std::string gives =
      "a published model: gives all keys, those beside it change them; stratagem list models lists "
      "them";
  Json properties =
      Json::object()
          .set("preset", Json::object().set("enum", published).set("description", gives))
          .set("family", words(names).schema);
  for (const auto& [key, schemas] : keys) properties.set(key, Json::object().set("anyOf", schemas));
  return Json::object()
      .set("description", "The network, by the sizes of its family.")
      .set("type", "object")
      .set("additionalProperties", false)
      .set("properties", properties);
}

}  // namespace stratagem::model
