// The models that a scenario can name, and how their configurations are read.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "base/memo.hpp"
#include "base/options.hpp"
#include "model/cast_products.hpp"
#include "model/graph.hpp"

namespace stratagem::model {

/// In which types weights and activations are, gradients of weights are held, and linear layers
/// multiply.
struct NumberTypes {
  DataType values = DataType::fp16;
  DataType gradients = DataType::fp16;
  DataType products = values;

  friend auto operator<=>(const NumberTypes&, const NumberTypes&) = default;
};

/// One family of models: reads its configuration from a scenario's "model" object. A file of this
/// folder defines a function that returns it, and all.cpp names that function.
struct Family {
  std::string name;
  std::string summary;
  std::vector<OptionText> options;  ///< keys of the object
  /// The graph of one micro-batch of `batch` samples. Equal ones that are in use are mostly
  /// one (base/memo.hpp), unless only some parameters are trained.
  std::function<std::shared_ptr<const Graph>(const JsonReader& config, std::int64_t batch,
                                             const NumberTypes& types)>
      build;
};

/// The files that a model object names.
std::vector<std::string> files_of(const JsonReader& config);

/// All families, in the order in which --help lists them.
const std::vector<Family>& families();
/// The schema of a model object, of whatever family.
Json schema_of_models();

/// The family with the keys "lora" and "frozen": its models may leave parameters as they are.
Family trained_in_part(Family family);

/// The graph with gradients held, and linear layers multiplied, in their types.
inline Graph in_types(Graph graph, const NumberTypes& types) {
  if (are_cast(types.values, types.products))
    graph = cast_products(std::move(graph), types.products);
  hold_gradients_in(graph, types.gradients);
  return graph;
}

/// A family whose configurations are read by their options, completed and checked (if `complete` is
/// not null), and built.
template <typename Config>
Family family_of(const std::string& name, const std::string& summary,
                 const OptionList<Config>& options,
                 void (*complete)(Config&, const JsonReader& config),
                 Graph (*build)(const Config&)) {
  const auto built = std::make_shared<Memo<std::pair<Config, NumberTypes>, Graph>>(2);
  return trained_in_part(
      {name,
       summary,
       {options.begin(), options.end()},
       [=](const JsonReader& reader, std::int64_t batch, const NumberTypes& types) {
         Config config = read_object(options, reader, Config{.batch = batch, .type = types.values});
         if (complete != nullptr) complete(config, reader);
         return built->of({config, types}, [&] { return in_types(build(config), types); });
       }});
}

}  // namespace stratagem::model
