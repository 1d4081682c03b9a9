// Published models that a scenario can name in place of their sizes.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"

namespace stratagem::model {

/// One published model: keys of a scenario's "model" object.
struct Preset {
  std::string name;     ///< "mixtral-8x7b"
  std::string summary;  ///< one line for --help
  std::string keys;     ///< JSON, with the family
};

/// All presets, in the order in which --help lists them.
const std::vector<Preset>& presets();

/// A "model" object, with whatever it lacks taken from the preset that it names, if any. Errors of
/// those keys name the place of the object. Throws InputError for a name that is none, or for
/// another family.
JsonReader with_preset(const JsonReader& model);

}  // namespace stratagem::model
