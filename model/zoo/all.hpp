// The models that a scenario can name, and how their configurations are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "model/graph.hpp"

namespace stratagem::model {

/// One family of models: reads its configuration from a scenario's "model" object.
struct Family {
  std::string name;
  std::string summary;
  /// Builds the graph of one micro-batch of `batch` samples with weights of type `type`.
  Graph (*build)(const JsonReader& config, std::int64_t batch, DataType type);
};

/// All families, in the order in which --help lists them.
const std::vector<Family>& families();

}  // namespace stratagem::model
