// The table of model families, and what they say of their keys together.
#include "model/zoo/all.hpp"

#include <algorithm>
#include <utility>

#include "base/pattern.hpp"
#include "base/table.hpp"
#include "model/adapters.hpp"
#include "model/freeze.hpp"
#include "model/zoo/presets.hpp"

namespace stratagem::model {
namespace {

/// Parameters of these names.
bool named(const Tensor& parameter, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return matches(parameter.name, pattern); });
}

/// Patterns, each of which some parameter has that can be taken.
std::vector<std::string> read_patterns(const JsonReader& list, const Graph& graph,
                                       const std::function<bool(TensorId)>& taken,
                                       const std::string& what) {
  std::vector<std::string> patterns;
  for (const JsonReader& entry : list.elements()) {
    patterns.push_back(entry.text());
    std::vector<std::string> names;
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
      const Tensor& tensor = graph.tensors[id];
      if (tensor.role == Role::parameter && taken(static_cast<TensorId>(id)))
        names.push_back(tensor.name);
    }
    const auto fits = [&](const std::string& name) { return matches(name, patterns.back()); };
    if (std::ranges::none_of(names, fits))
      entry.fail(what + fitting_patterns(patterns.back(), names));
  }
  return patterns;
}

/// What the key "lora" says.
struct Adapters {
  std::int64_t rank = 0;
  std::vector<std::string> of = {"*.attention.qkv.weight"};
};

OptionList<Adapters> adapter_options() {
  return {{"rank", &Adapters::rank, whole(1, 100'000), "of A and B", must_be_there},
          {"of", &Adapters::of, list_of<std::string>(text(), 1),
           "patterns of names of weights of linear layers (`*` is any text)",
           "`*.attention.qkv.weight`"}};
}

/// Adds the adapters that the key "lora" asks for.
std::shared_ptr<const Graph> adapted(const JsonReader& config, std::shared_ptr<const Graph> graph) {
  const auto lora = config.find("lora");
  if (!lora) return graph;
  if (config.has("prefix")) lora->fail("no prefix beside it, since adapters alone are trained");
  Adapters adapters = read_object(adapter_options(), *lora, Adapters{});
  const auto takes = [&](TensorId weight) { return takes_adapter(*graph, weight); };
  const std::string what = "a pattern of names of linear layers' weights";
  if (const auto of = lora->find("of")) adapters.of = read_patterns(*of, *graph, takes, what);
  bool any = false;
  Graph result = with_adapters(*graph, adapters.rank, [&](const Tensor& weight) {
    const bool is = named(weight, adapters.of);
    any = any || is;
    return is;
  });
  if (!any) lora->fail("\"of\", since the model has no weight " + adapters.of.front());
  return std::make_shared<const Graph>(std::move(result));
}

/// Freezes what the key "frozen" names.
std::shared_ptr<const Graph> frozen(const JsonReader& config, std::shared_ptr<const Graph> graph) {
  const auto list = config.find("frozen");
  if (!list) return graph;
  const std::vector<std::string> patterns = read_patterns(
      *list, *graph, [](TensorId) { return true; }, "a pattern of parameters' names");
  Graph rest = freeze(*graph, [&](const Tensor& parameter) { return named(parameter, patterns); });
  if (!trains_any(rest)) list->fail("patterns that leave a parameter to train");
  return std::make_shared<const Graph>(std::move(rest));
}

}  // namespace

Family trained_in_part(Family family) {
  family.options.push_back({object_of(adapter_options()).values(), "lora",
                            "low-rank adapters beside linear layers, by default those of queries, "
                            "keys and values of self-attentions; nothing else is trained",
                            "none"});
  family.options.push_back({list_of<std::string>(text()).values(), "frozen",
                            "patterns of names of parameters that are not trained (`*` is any "
                            "text): no gradients, no states, nothing to reduce",
                            "none"});
  family.build = [build = family.build](const JsonReader& config, std::int64_t batch,
                                        const NumberTypes& types) {
    return frozen(config, adapted(config, build(config, batch, types)));
  };
  return family;
}

// clang-format off
STRATAGEM_TABLE(families, Family,
    gpt_family,
    llama_family,
    bert_family,
    t5_family,
    vit_family,
    swin_family,
    evoformer_family,
    written_family)
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
      .set("description", "The network, by the sizes of its family; or a preset's name.")
      .set("type", Json::array().push("object").push("string"))
      .set("additionalProperties", false)
      .set("properties", properties);
}

}  // namespace stratagem::model
