// The models that a scenario can name, and how their configurations are read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/graph.hpp"

namespace stratagem::model {

/// One family of models: reads its configuration from a scenario's "model" object. A file of this
/// folder defines a function that returns it, and all.cpp names that function.
struct Family {
  std::string name;
  std::string summary;
  std::vector<OptionText> options;  ///< keys of the object
  /// Builds the graph of one micro-batch of `batch` samples with weights of type `type`.
  std::function<Graph(const JsonReader& config, std::int64_t batch, DataType type)> build;
};

/// All families, in the order in which --help lists them.
const std::vector<Family>& families();
/// The schema of a model object, of whatever family.
Json schema_of_models();

/// The family with the key "frozen": its models may leave parameters as they are.
Family with_frozen(Family family);

/// A family whose configurations are read by their options, completed and checked (if `complete` is
/// not null), and built.
template <typename Config>
Family family_of(const std::string& name, const std::string& summary,
                 const OptionList<Config>& options,
                 void (*complete)(Config&, const JsonReader& config),
                 Graph (*build)(const Config&)) {
  return with_frozen({name,
                      summary,
                      {options.begin(), options.end()},
                      [=](const JsonReader& reader, std::int64_t batch, DataType type) {
                        Config config =
                            read_object(options, reader, Config{.batch = batch, .type = type});
                        if (complete != nullptr) complete(config, reader);
                        return build(config);
                      }});
}

}  // namespace stratagem::model
