// What a JSON schema (draft 7, as far as scenarios/schema uses it) allows, as a list of keys.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace stratagem::keys {

using nlohmann::ordered_json;

/// Every value that a document may hold and that holds no other value, by its path:
///   /training/micro_batch            a key of an object
///   /training/precision = fp16       a word that may stand there, each on its own
///   /gemm/fp16/efficiency/value      keys of an object whose "propertyNames" lists them
///   /evidence/*                      of an object whose keys are free
///   /precisions/* = fp16             elements of a list
///   /primitives/split/parts          elements that are one of several definitions, by its name
/// `prefix` stands before each.
std::set<std::string> leaf_keys(const ordered_json& schema, const std::string& prefix);

/// One object of a document, with the keys that its schema has for it.
struct KnownKeys {
  std::string pointer;  ///< of the object in the document
  std::set<std::string> keys;
};
/// The objects of a document whose keys are not free.
std::vector<KnownKeys> known_keys(const ordered_json& schema, const ordered_json& document);

/// Does a pattern name a path? `*` in it stands for any one step, and "KEY = *" for any word of the
/// key.
bool names(const std::string& pattern, const std::string& path);

}  // namespace stratagem::keys
