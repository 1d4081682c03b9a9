// Settings from elsewhere, such as a command line, over those of a scenario's runs.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// The object of a run that has a key: "strategy" of "tensor"; "" of a key of the run itself, and
/// of one that nothing has.
std::string object_of(const std::string& key);

/// A key of a run with one value or several.
struct KeyValues {
  std::vector<std::string> path;  ///< {"strategy", "tensor"}
  std::vector<Json> values;       ///< at least one
  std::string option = {};        ///< "--set tensor=4"
};

/// "tensor=4" or "training.precision=bf16": dots part the keys of objects; the first key may be one
/// of the run, or of its cluster, its training, a strategy or a model. Values are JSON, or words:
/// "1f1b". With `several` commas part values, but not within brackets and braces. Throws InputError
/// for another text, and for a plain value of an object, with `from` as its file.
KeyValues read_change(const std::string& text, bool several, const std::string& from);

/// One of a run's variants: what is different, and how its name goes on: ", tensor 4".
struct Variant {
  Json settings = Json::object();
  std::string suffix;
};

/// Every combination of values; the last change varies fastest. Suffixes name keys of several
/// values. A change of `model.preset` sets all keys of the preset.
std::vector<Variant> variants(const std::vector<KeyValues>& changes);

/// A run with a variant's settings over its own, its suffix behind the run's name; compared with
/// the `first` variant of its baseline, or of `baseline` if it names none.
JsonReader varied(const JsonReader& run, const Variant& variant, const Variant& first,
                  const std::string& baseline);

/// Settings over those of a file. Null takes a key away, also one that the file may not have.
JsonReader set_over(const Json& settings, const JsonReader& below);

/// Where a run says what a GPU costs. No prediction depends on it.
inline const std::vector<std::string> price_path = {"cluster", "price_per_gpu_hour"};

/// Does a prediction depend on any of these keys?
bool change_predictions(const std::vector<KeyValues>& changes);

/// For errors of runs: which option set which key.
std::vector<SetKey> set_keys(const std::vector<KeyValues>& changes);

/// Keys with one value, which all variants have: "strategy.tensor 4, training.precision bf16".
std::string set_in_all(const std::vector<KeyValues>& changes);

}  // namespace stratagem::study
