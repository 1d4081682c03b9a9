// Reads the object "search" by the options of all strategies.
#include "search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "model/zoo/presets.hpp"
#include "search/partition/searcher.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "study/reading/what_follows.hpp"

namespace stratagem::search {
namespace {

/// More would take hours only to be counted.
constexpr std::size_t most_combinations = 1'000'000;

std::string shown(const Json& value) {
  std::string text = value.text();
  std::erase(text, '"');
  return text;
}

bool is_null(const Json& value) { return value.text() == "null"; }

/// The searchers that find values of a key.
std::vector<std::string> searchers_for(const std::string& key) {
  std::vector<std::string> names;
  for (const Searcher& searcher : searchers()) {
    if (searcher.key == key) names.push_back(searcher.name);
  }
  return names;
}

bool is_searcher(const std::string& key, const std::string& word) {
  const std::vector<std::string> names = searchers_for(key);
  return std::ranges::find(names, word) != names.end();
}

std::vector<Json> listed(const JsonReader& list) {
  std::vector<Json> values;
  for (const JsonReader& value : list.elements()) {
    Json copy = copy_of(value);
    const bool twice =
        std::ranges::any_of(values, [&](const Json& other) { return other.text() == copy.text(); });
    if (twice) value.fail("values that differ");
    values.push_back(std::move(copy));
  }
  if (values.empty()) list.fail("a list of at least one value");
  return values;
}

const std::vector<Json> micro_batches = {1, 2, 4, 8};

/// A key of the object, as docs show it.
struct Key {
  std::string name;
  Json one;                 ///< schema of a value
  std::string words;        ///< the same in words
  std::vector<Json> worth;  ///< trying
  std::string worth_where = {};
};

std::vector<Key> keys() {
  const Format<std::int64_t> count = whole(1);
  std::vector<Key> all = {{"gpus", count.schema, count.words, {}},
                          {"micro_batch", count.schema, count.words, micro_batches}};
  for (const OptionText& option : strategies::option_texts()) {
    Key key{option.key, option.schema, option.words, option.tried, option.tried_where};
    for (const std::string& name : searchers_for(option.key)) {
      const Json word = Json::object().set("const", name);
      key.one = Json::object().set("anyOf", Json::array().push(key.one).push(word));
      key.words += ", or `" + name + "`";
    }
    all.push_back(std::move(key));
  }
  return all;
}

/// The values of a strategy's key must be such as its option reads.
void check_values(const Option<strategies::Options>& option, const JsonReader& list) {
  for (const JsonReader& value : list.elements()) {
    strategies::Options anywhere;
    if (const auto names = searchers_for(option.key); value.is_string() && !names.empty()) {
      if (std::ranges::find(names, value.text()) != names.end()) continue;
      value.fail(fmt::format("{}, or {}", option.words, fmt::join(names, ", ")));
    }
    if (!value.is_null()) option.read(value, anywhere);
    if (value.is_object()) value.finish();
  }
}

/// Is it a number of ranks that the GPUs are divided by?
bool is_degree(const strategies::Strategy& strategy, const std::string& key) {
  return key == strategy.key() && (!strategy.ranks.name.empty() || !strategy.ranks.within.empty());
}

/// Degrees that are worth trying, and what else divides a number of GPUs: 3, 6 and 12 of 24.
std::vector<Json> with_divisors(std::vector<Json> degrees, const std::vector<Json>& gpus) {
  std::int64_t most = 1;
  const auto number = [](const Json& value) {
    return JsonReader::from_text(value.text(), "").whole_number();
  };
  for (const Json& degree : degrees) most = std::max(most, number(degree));
  for (std::int64_t divisor = 3; divisor <= most; ++divisor) {
    const bool divides =
        std::ranges::any_of(gpus, [&](const Json& n) { return number(n) % divisor == 0; });
    const bool there =
        std::ranges::any_of(degrees, [&](const Json& n) { return number(n) == divisor; });
    if (divides && !there) degrees.emplace_back(divisor);
  }
  std::ranges::stable_sort(degrees, {}, number);
  return degrees;
}

JsonReader defaults_of(const JsonReader& scenario, const std::vector<study::KeyValues>& changes) {
  if (!scenario.has("search"))
    scenario.fail(
        "the key \"search\": {}, and \"defaults\" with all that a run has but the part of "
        "its strategy that is sought",
        "no \"search\"");
  const JsonReader defaults = scenario.at("defaults");
  return study::with_profile_of_gpu(
      changes.empty() ? defaults
                      : study::set_over(study::variants(changes).front().settings, defaults));
}

/// What is set for all plans must not vary.
void check_apart(const std::vector<Dimension>& dimensions,
                 const std::vector<study::KeyValues>& changes) {
  for (const study::KeyValues& change : changes) {
    const JsonReader set =
        JsonReader::from_text(study::variants({change}).front().settings.text(), change.option);
    for (const Dimension& one : dimensions) {
      const auto object = set.find(one.object);
      if (object && object->has(one.key))
        throw InputError(change.option, "", "a key that \"search\" does not vary", one.key);
    }
  }
}

}  // namespace

Space Space::read(const std::string& file, const std::vector<study::KeyValues>& changes) {
  return read(JsonReader::from_file(file), changes);
}

Space::Space(const JsonReader& scenario, const std::vector<study::KeyValues>& changes)
    : scenario_(scenario),
      question_(study::question_of(scenario)),
      defaults_(defaults_of(scenario, changes)),
      set_(study::set_keys(changes)) {
  for (const char* of_simulate : {"$schema", "baseline", "runs", "workflows"}) {
    if (const auto other = scenario.find(of_simulate)) other->skip();
  }
  const JsonReader space = scenario.at("search");
  add_gpus(space);
  add("training", "micro_batch", micro_batches, space);
  for (const strategies::Strategy& strategy : strategies::all()) {
    for (const Option<strategies::Options>& option : strategy.options) {
      const auto named = space.find(option.key);
      if (named && named->is_array()) check_values(option, *named);
      add("strategy", option.key, worth_here(option, is_degree(strategy, option.key)), space);
    }
  }
  space.finish();
  check_apart(dimensions_, changes);
  if (defaults_.has("plan"))
    defaults_.at("plan").fail("a strategy, whose options a search tries", "a plan file");
  double combinations = 1;
  for (const Dimension& one : dimensions_) combinations *= static_cast<double>(one.values.size());
  if (combinations > most_combinations) {
    space.fail(
        fmt::format("at most {} combinations: name keys with fewer values", most_combinations),
        fmt::format("{:.0f}", combinations));
  }
}

std::vector<std::string> Space::degrees_left_alone() const {
  std::vector<std::string> left;
  for (const strategies::Strategy& strategy : strategies::all()) {
    const std::string& key = strategy.key();
    const bool degree = is_degree(strategy, key);
    const bool said = defaults_.has("strategy") && defaults_.at("strategy").has(key);
    const bool follows = key == "data";  // from the GPUs, and the other degrees
    if (degree && !follows && !said &&
        std::ranges::find(dimensions_, key, &Dimension::key) == dimensions_.end())
      left.push_back(key);
  }
  return left;
}

void Space::add(const std::string& object, const std::string& key, const std::vector<Json>& worth,
                const JsonReader& space) {
  const auto named = space.find(key);
  if (named && named->is_array()) {
    dimensions_.push_back({object, key, listed(*named)});
    dimensions_.back().searched =
        std::ranges::any_of(dimensions_.back().values,
                            [&](const Json& value) { return is_searcher(key, shown(value)); });
    for (const JsonReader& value : named->elements()) {
      if (object != "strategy" && !value.is_null()) static_cast<void>(value.between(1, 1'000'000));
    }
  } else if (named) {
    const bool any = named->is_string() && named->text() == "any";
    const std::string one = named->is_string() && !any ? named->dump() : "2";
    const std::string list = "a list of values, such as [" + one + "]";
    if (worth.empty()) named->fail(list + (key == "gpus" ? ", or {\"at_most\": N}" : ""));
    if (!any) named->fail(list + ", or \"any\" for those that are worth trying");
    dimensions_.push_back({object, key, worth, true});
  } else if (!worth.empty() && !(defaults_.has(object) && defaults_.at(object).has(key))) {
    dimensions_.push_back({object, key, worth, true});
  }
}

void Space::add_gpus(const JsonReader& space) {
  const auto named = space.find("gpus");
  if (!named) {
    if (!defaults_.at("cluster").has("gpus"))
      defaults_.at("cluster").fail("the key \"gpus\" here, or in \"search\"");
    return;
  }
  if (!named->is_object()) return add("cluster", "gpus", {}, space);
  Dimension gpus{"cluster", "gpus", {}};
  for (std::int64_t n = named->at("at_most").between(1, 1'000'000); n > 0; n /= 2) {
    gpus.values.emplace_back(n);
    if (n % 2 != 0) break;
  }
  dimensions_.push_back(std::move(gpus));
}

std::vector<Json> Space::worth_here(const OptionText& option, bool is_degree) const {
  if (option.tried.empty() || !is_degree) return option.tried;
  if (!option.tried_where.empty()) {
    const JsonReader model = JsonReader::from_text(defaults_.at("model").dump(), file());
    if (!model::with_preset(model).has(option.tried_where)) return {};
  }
  return with_divisors(option.tried, numbers_of_gpus());
}

std::vector<Json> Space::numbers_of_gpus() const {
  const auto varied = std::ranges::find(dimensions_, "gpus", &Dimension::key);
  if (varied != dimensions_.end()) return varied->values;
  return {Json(defaults_.at("cluster").at("gpus").between(1, 1'000'000))};
}

std::size_t Space::size() const {
  std::size_t combinations = 1;
  for (const Dimension& one : dimensions_) combinations *= one.values.size();
  return combinations;
}

std::size_t Space::place(std::size_t number, std::size_t dimension) const {
  for (std::size_t i = dimensions_.size() - 1; i > dimension; --i)
    number /= dimensions_[i].values.size();
  return number % dimensions_[dimension].values.size();
}

const Json& Space::value(std::size_t number, std::size_t dimension) const {
  return dimensions_[dimension].values[place(number, dimension)];
}

Json Space::settings(std::size_t number) const {
  std::array<std::pair<std::string, Json>, 3> objects = {
      {{"cluster", Json::object()}, {"training", Json::object()}, {"strategy", Json::object()}}};
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const Json& set = value(number, i);
    if (is_null(set) || is_searcher(dimensions_[i].key, shown(set))) continue;
    const auto at = std::ranges::find(objects, dimensions_[i].object,
                                      [](const auto& object) { return object.first; });
    at->second.set(dimensions_[i].key, set);
  }
  Json settings = Json::object();
  for (const auto& [name, object] : objects) settings.set(name, object);
  const bool data_named =
      (defaults_.has("strategy") && defaults_.at("strategy").has("data")) ||
      std::ranges::find(dimensions_, "data", &Dimension::key) != dimensions_.end();
  if (data_named) return settings;
  return settings.set("strategy", objects[2].second.set("data", data_ranks(settings)));
}

std::optional<std::string> Space::searcher(std::size_t number) const {
  std::optional<std::string> name;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::string word = shown(value(number, i));
    if (!is_searcher(dimensions_[i].key, word)) continue;
    if (name)
      throw InputError(file(), "/search/" + dimensions_[i].key, "one searcher for a plan",
                       *name + " and " + word);
    name = word;
  }
  return name;
}

strategies::Options Space::options(const Json& settings) const {
  const JsonReader run = JsonReader::from_text(settings.text(), file()).over(defaults_);
  const JsonReader strategy = run.at("strategy");
  strategies::Options options;
  for (const strategies::Strategy& one : strategies::all())
    options = read_object(one.options, strategy, options);
  return options;
}

int Space::data_ranks(const Json& settings) const {
  const JsonReader run = JsonReader::from_text(settings.text(), file()).over(defaults_);
  const std::int64_t gpus = run.at("cluster").at("gpus").between(1, 1'000'000);
  const int others = strategies::devices_of(options(settings));
  if (gpus % others != 0) {
    throw InputError(file(), "/strategy",
                     fmt::format("{}, but for data, to divide the GPUs", strategies::rank_keys()),
                     fmt::format("{} and {} GPUs", others, gpus));
  }
  return static_cast<int>(gpus / others);
}

bool Space::leaves_out(std::size_t number) const {
  const strategies::Options all = options(settings(number));
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (place(number, i) == 0 || !dimensions_[i].declared) continue;
    for (const strategies::Strategy& strategy : strategies::all()) {
      for (const Option<strategies::Options>& option : strategy.options) {
        const bool same = option.key == dimensions_[i].key;
        if (same && option.acts != nullptr && !option.acts(all)) return true;
      }
    }
  }
  return false;
}

std::string Space::words(std::size_t number) const {
  std::string text;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const Json& set = value(number, i);
    if (is_null(set)) continue;
    text += (text.empty() ? "" : ", ") + dimensions_[i].key + " " + shown(set);
  }
  return text;
}

Json schema_of_search() {
  Json properties = Json::object();
  for (const Key& key : keys()) {
    Json value = Json::object().set(
        "anyOf", Json::array().push(key.one).push(Json::object().set("type", "null")));
    Json forms = Json::array().push(Json::object()
                                        .set("type", "array")
                                        .set("items", value)
                                        .set("minItems", 1)
                                        .set("uniqueItems", true));
    if (!key.worth.empty()) forms.push(Json::object().set("const", "any"));
    if (key.name == "gpus") {
      forms.push(Json::object()
                     .set("type", "object")
                     .set("additionalProperties", false)
                     .set("required", Json::array().push("at_most"))
                     .set("properties", Json::object().set("at_most", key.one)));
    }
    properties.set(key.name, Json::object().set("anyOf", forms));
  }
  return Json::object()
      .set("type", "object")
      .set("description", "The values that `stratagem search` combines; null leaves a key out.")
      .set("additionalProperties", false)
      .set("properties", properties);
}

std::string table_of_search() {
  std::string text = "| key | each value | worth trying |\n|---|---|---|\n";
  for (const Key& key : keys()) {
    std::string worth;
    for (const Json& value : key.worth) worth += (worth.empty() ? "" : ", ") + shown(value);
    if (!key.worth_where.empty()) worth += " (models with `" + key.worth_where + "`)";
    text += "| `" + key.name + "` | " + key.words + " | " + worth + " |\n";
  }
  return text;
}

}  // namespace stratagem::search
