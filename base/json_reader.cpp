// Reads JSON by name and type; every document remembers which keys were asked for.
#include "base/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_text.hpp"
#include "base/malformed_input.hpp"
#include "base/nearest.hpp"
#include "base/quantity_text.hpp"
#include "base/read_file.hpp"
#include "base/shortened.hpp"

namespace stratagem {
namespace {

using nlohmann::ordered_json;

std::string compact(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    if (!list.empty()) list += ", ";
    list += '"' + word + '"';
  }
  return list;
}

/// The value if it is a whole number that an int64 holds; 1e6 is a whole number too.
std::optional<std::int64_t> whole_number_of(const ordered_json& value) {
  constexpr double exact_doubles_end = 9007199254740992.0;  // 2^53
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(number);
  } else if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (number == std::floor(number) && std::abs(number) <= exact_doubles_end) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

/// Refuses an object that has one key twice, of which nlohmann/json would silently keep the last.
class UniqueKeys {
 public:
  explicit UniqueKeys(std::string file) : file_(std::move(file)) {}

  bool operator()(int /*depth*/, ordered_json::parse_event_t event, const ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (event == Event::object_end || event == Event::array_end) {
      open_.pop_back();
    } else if (event == Event::key) {
      Level& level = open_.back();
      level.key = parsed.get<std::string>();
      if (!level.keys.insert(level.key).second) {
        throw InputError(file_, path(), "every key once", "the key \"" + level.key + "\" twice");
      }
    } else {
      if (!open_.empty() && open_.back().is_array) ++open_.back().index;
      if (event == Event::object_start) open_.push_back({.is_array = false});
      if (event == Event::array_start) open_.push_back({.is_array = true});
    }
    return true;
  }

 private:
  struct Level {
    bool is_array = false;
    int index = -1;
    std::string key{};
    std::set<std::string> keys{};
  };

  [[nodiscard]] std::string path() const {
    std::string result;
    for (const Level& level : open_) {
      result = child_path(result, level.is_array ? std::to_string(level.index) : level.key);
    }
    return result;
  }

  std::string file_;
  std::vector<Level> open_;
};

[[noreturn]] void malformed(const JsonReader& where, const std::string& expected,
                            const std::string& found) {
  throw MalformedInput(where.file(), where.path(), expected, found);
}

[[noreturn]] void malformed(const JsonReader& where, const std::string& expected) {
  malformed(where, expected, shortened(where.dump(), longest_echo));
}

/// What readers did with one object or array.
struct Use {
  std::vector<std::string> asked;  ///< keys asked for, there or not, in the order of asking
  bool opened = false;             ///< a reader stood here
  bool skipped = false;            ///< nothing below needs to be read
};

}  // namespace

struct JsonReader::Document {
  std::string file;
  ordered_json root;
  std::unordered_map<const ordered_json*, Use> uses;
  std::mutex using_it;  ///< of `uses`: readers of several threads share a document

  void mark(const ordered_json* value, bool Use::*as) {
    const std::scoped_lock alone(using_it);
    uses[value].*as = true;
  }

  void ask(const ordered_json& object, std::string_view key) {
    const std::scoped_lock alone(using_it);
    auto& asked = uses[&object].asked;
    if (std::ranges::find(asked, key) == asked.end()) asked.emplace_back(key);
  }

  bool knows(const ordered_json& object, std::string_view key) {
    const std::scoped_lock alone(using_it);
    const auto& asked = uses[&object].asked;
    return std::ranges::find(asked, key) != asked.end();
  }

  void finish(const ordered_json& value, const std::string& path) const {
    const auto found = uses.find(&value);
    if (found == uses.end() || !found->second.opened || found->second.skipped) return;
    if (value.is_object()) {
      const std::vector<std::string>& asked = found->second.asked;
      for (const auto& [key, member] : value.items()) {
        const std::string here = child_path(path, key);
        if (std::find(asked.begin(), asked.end(), key) == asked.end()) refuse(key, here, asked);
        finish(member, here);
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        finish(value[i], child_path(path, std::to_string(i)));
      }
    }
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& path,
                           const std::vector<std::string>& asked) const {
    std::string expected = "no keys here";
    if (const std::string near = did_you_mean(key, asked); !near.empty()) {
      expected = "one of the known keys" + near;
    } else if (!asked.empty()) {
      expected = "one of the known keys " + quoted_list(asked);
    }
    throw MalformedInput(file, path, expected, "an unknown key");
  }
};

struct JsonReader::Layer {
  std::shared_ptr<Document> document;
  const ordered_json* value = nullptr;
  std::string path;
  bool borrowed = false;  ///< belongs to the defaults, whose owner calls finish

  [[nodiscard]] Layer child(const ordered_json& member, std::string_view key) const {
    return {document, &member, child_path(path, key), borrowed};
  }

  /// Values of one place merged into one, as `find` sees their members.
  static ordered_json merged(const std::vector<Layer>& layers) {
    if (!layers.front().value->is_object()) return *layers.front().value;
    ordered_json result = ordered_json::object();
    for (const Layer& layer : layers) {
      for (const auto& [key, member] : layer.value->items()) {
        if (result.contains(key)) continue;
        const std::vector<Layer> of_key = children(layers, key);
        if (!of_key.empty()) result[key] = merged(of_key);
      }
    }
    return result;
  }

  /// What layers of objects have under a key. Only objects are layered; anything else hides what
  /// lies below it, and null takes it away.
  static std::vector<Layer> children(const std::vector<Layer>& layers, std::string_view key) {
    std::vector<Layer> found;
    bool hides = false;
    for (const Layer& layer : layers) {
      const auto member = layer.value->find(std::string(key));
      if (member == layer.value->end()) continue;
      if (found.empty() || (found.back().value->is_object() && member->is_object())) {
        found.push_back(layer.child(*member, key));
      } else {
        hides = true;
      }
    }
    if (hides && found.front().value->is_null()) found.clear();
    return found;
  }
};

JsonReader::JsonReader(std::vector<Layer> layers) : layers_(std::move(layers)) {
  for (const Layer& layer : layers_) layer.document->mark(layer.value, &Use::opened);
}
JsonReader::JsonReader(const JsonReader&) = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(const JsonReader&) = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;
JsonReader::~JsonReader() = default;

JsonReader JsonReader::from_file(const std::string& file) {
  return from_text(read_file(file), file);
}

JsonReader JsonReader::from_text(std::string_view text, const std::string& file_name,
                                 const std::string& path) {
  constexpr int deepest = 100;  // deeper values would be walked and freed beyond the stack
  auto document = std::make_shared<Document>();
  document->file = file_name;
  try {
    UniqueKeys unique_keys(file_name);
    document->root = ordered_json::parse(
        text.begin(), text.end(),
        [&](int depth, ordered_json::parse_event_t event, const ordered_json& parsed) {
          if (depth > deepest) throw InputError(file_name, "", "JSON nested less deeply", "");
          return unique_keys(depth, event, parsed);
        });
  } catch (const ordered_json::parse_error& error) {
    throw InputError(file_name, "", "JSON", syntax_error(text, error.byte, error.what()));
  } catch (const ordered_json::out_of_range& error) {
    throw InputError(file_name, "", "JSON", "a number that is too large");
  }
  const ordered_json* root = &document->root;
  return JsonReader({Layer{std::move(document), root, path, false}});
}

JsonReader JsonReader::over(const JsonReader& defaults) const {
  std::vector<Layer> layers = layers_;
  if (is_object() && defaults.is_object()) {
    for (Layer layer : defaults.layers_) {
      layer.borrowed = true;
      layers.push_back(std::move(layer));
    }
  }
  return JsonReader(std::move(layers));
}

bool JsonReader::has(std::string_view key) const { return find(key).has_value(); }

JsonReader JsonReader::at(std::string_view key) const {
  if (auto found = find(key)) return *std::move(found);
  std::vector<std::string> present;
  std::string expected = "the key \"" + std::string(key) + "\"";
  const ordered_json merged = Layer::merged(layers_);
  for (const auto& member : merged.items()) {
    const std::string& name = member.key();
    const bool known = std::ranges::any_of(
        layers_, [&](const Layer& layer) { return layer.document->knows(*layer.value, name); });
    if (!known && is_written_for(name, std::string(key)))
      expected += " in place of \"" + name + "\"";
    present.push_back(name);
  }
  malformed(*this, expected,
            present.empty() ? "no keys" : shortened("only " + quoted_list(present), longest_echo));
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!is_object()) malformed(*this, "an object, as {\"" + std::string(key) + "\": ...}");
  // Asked for in every layer, so that a default that every run overrides is still a known key.
  for (const Layer& layer : layers_) layer.document->ask(*layer.value, key);
  std::vector<Layer> found = Layer::children(layers_, key);
  if (found.empty()) return std::nullopt;
  return JsonReader(std::move(found));
}

std::vector<std::string> JsonReader::keys() const {
  if (!is_object()) malformed(*this, "an object");
  std::vector<std::string> result;
  for (const Layer& layer : layers_) {
    for (const auto& [key, member] : layer.value->items()) {
      layer.document->ask(*layer.value, key);
      const bool known = std::find(result.begin(), result.end(), key) != result.end();
      if (!known && has(key)) result.push_back(key);
    }
  }
  return result;
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!is_array()) malformed(*this, "an array");
  const Layer& layer = layers_.front();
  std::vector<JsonReader> result;
  for (std::size_t i = 0; i < layer.value->size(); ++i) {
    result.push_back(JsonReader({layer.child((*layer.value)[i], std::to_string(i))}));
  }
  return result;
}

bool JsonReader::is_object() const { return layers_.front().value->is_object(); }
bool JsonReader::is_array() const { return layers_.front().value->is_array(); }
bool JsonReader::is_string() const { return layers_.front().value->is_string(); }
bool JsonReader::is_number() const { return layers_.front().value->is_number(); }
bool JsonReader::is_null() const { return layers_.front().value->is_null(); }

bool JsonReader::boolean() const {
  if (!layers_.front().value->is_boolean()) malformed(*this, "true or false");
  return layers_.front().value->get<bool>();
}

std::string JsonReader::text() const {
  if (!is_string()) malformed(*this, "a string");
  const auto text = layers_.front().value->get<std::string>();
  // Terminals and tables would act on them.
  const auto controls = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(text, controls)) malformed(*this, "text without control characters");
  return text;
}

double JsonReader::number() const {
  if (!is_number()) malformed(*this, "a number");
  return layers_.front().value->get<double>();
}

std::int64_t JsonReader::whole_number() const {
  const auto whole = whole_number_of(*layers_.front().value);
  if (!whole) malformed(*this, "a whole number (below 2^63)");
  return *whole;
}

std::int64_t JsonReader::at_least(std::int64_t least) const {
  const auto whole = whole_number_of(*layers_.front().value);
  if (!whole || *whole < least) malformed(*this, "a whole number >= " + std::to_string(least));
  return *whole;
}

std::int64_t JsonReader::between(std::int64_t least, std::int64_t most) const {
  const std::string range =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto whole = whole_number_of(*layers_.front().value);
  if (!whole || *whole < least) malformed(*this, range);
  if (*whole > most) fail(range);
  return *whole;
}

template <typename Q>
Q JsonReader::quantity() const {
  if (is_string()) {
    const auto parsed = parse_quantity<Q>(layers_.front().value->get_ref<const std::string&>());
    if (parsed && !std::signbit(parsed->value)) {
      if (const auto bounds = beyond_bounds(*parsed)) malformed(*this, std::string(*bounds));
      return *parsed;
    }
  }
  malformed(*this, std::string(expected_quantity<Q>()));
}

template Seconds JsonReader::quantity<Seconds>() const;
template Bytes JsonReader::quantity<Bytes>() const;
template Flops JsonReader::quantity<Flops>() const;
template BytesPerSecond JsonReader::quantity<BytesPerSecond>() const;
template FlopsPerSecond JsonReader::quantity<FlopsPerSecond>() const;

std::string JsonReader::one_of(const std::vector<std::string>& words) const {
  constexpr std::size_t few = 8;  // behind more words nobody sees what is meant
  const std::string all = "one of " + quoted_list(words);
  if (!is_string()) malformed(*this, all);
  std::string word = text();
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  const std::string near = did_you_mean(word, words);
  malformed(*this,
            near.empty() || words.size() <= few ? all + near : "a known word" + near + ", " + all);
}

void JsonReader::finish() const {
  for (const Layer& layer : layers_) {
    if (!layer.borrowed) layer.document->finish(*layer.value, layer.path);
  }
}

void JsonReader::skip() const {
  for (const Layer& layer : layers_) layer.document->mark(layer.value, &Use::skipped);
}

const std::string& JsonReader::file() const { return layers_.front().document->file; }
std::string JsonReader::path() const { return layers_.front().path; }
std::string JsonReader::dump() const { return compact(Layer::merged(layers_)); }

void JsonReader::fail(const std::string& expected) const {
  fail(expected, shortened(dump(), longest_echo));
}

void JsonReader::fail(const std::string& expected, const std::string& found) const {
  throw InputError(file(), path(), expected, found);
}

void check_word(const JsonReader& where, const std::string& word,
                const std::vector<std::string>& known, const std::string& expected) {
  if (std::ranges::find(known, word) != known.end()) return;
  malformed(where, expected + did_you_mean(word, known), '"' + word + '"');
}

}  // namespace stratagem
