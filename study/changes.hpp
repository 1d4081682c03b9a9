// Settings from elsewhere, such as a command line, over those of a scenario's runs.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"

namespace stratagem::study {

/// A key of a run with one value or several.
struct KeyValues {
  std::vector<std::string> path;  ///< {"strategy", "tensor"}
  std::vector<Json> values;       ///< at least one
};

/// "tensor=4" or "training.precision=bf16": dots part the keys of objects; a key alone is that of
/// the cluster, of the training, of a strategy or of a model that has this name. Values are JSON,
/// or words: "1f1b". With `several` commas part values, but not within brackets and braces. Throws
/// InputError, in the name of `from`, for what is no such text.
KeyValues read_change(const std::string& text, bool several, const std::string& from);

/// One of a run's variants: what is different, and how its name goes on: ", tensor 4".
struct Variant {
  Json settings = Json::object();
  std::string suffix;
};

/// Every combination of values; the last change varies fastest. What has one value is in no suffix.
std::vector<Variant> variants(const std::vector<KeyValues>& changes);

}  // namespace stratagem::study
