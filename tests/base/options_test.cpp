// Declared options: what is read, refused, and shown of them.
#include "base/options.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::options_test {
namespace {

enum class Sweetness { dry, sweet };

struct Layer {
  int height = 2;
  Sweetness sweetness = Sweetness::sweet;
};

struct Cake {
  Layer layer;
  int candles = 0;
  bool eaten = false;
  double price = 2.5;
  std::optional<Bytes> size;
  std::vector<int> slices;
};

Format<Sweetness> sweetness() {
  return choice<Sweetness>({{"dry", Sweetness::dry}, {"sweet", Sweetness::sweet}});
}

const OptionList<Cake>& cake_options() {
  static const OptionList<Layer> by_height = {
      {"height", &Layer::height, whole(1, 9), "as the number alone", must_be_there},
      {"sweetness", &Layer::sweetness, sweetness(), "how sweet"}};
  static const auto alone = converted<Layer>(
      whole(1, 9), [](std::int64_t n) { return Layer{.height = static_cast<int>(n)}; });
  static const OptionList<Cake> options = {
      {"layer", &Cake::layer, either(alone, {object_of(by_height)}), "its layer", "2"},
      {"sweet", [](Cake& all) -> Sweetness& { return all.layer.sweetness; }, sweetness(), "taste"},
      {"candles", &Cake::candles, whole(1), "candles on it", "none"},
      {"eaten", &Cake::eaten, flag(), "whether it is gone"},
      {"price", &Cake::price, positive(100), "price"},
      {"size", &Cake::size, size(), "how large", "unknown"},
      {"slices", &Cake::slices, list_of<int>(whole(1), 2), "who gets what", "whole"}};
  return options;
}

Cake read(const std::string& text) {
  const JsonReader reader = JsonReader::from_text(text, "cake.json");
  Cake cake = read_object(cake_options(), reader);
  reader.finish();
  return cake;
}

template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string refused(const std::string& text) {
  return refusal([&] { read(text); });
}

Json cake_schema() { return schema_of({cake_options().begin(), cake_options().end()}, "A cake."); }

}  // namespace

TEST_CASE("keys that are left out have the struct's own values") {
  const Cake cake = read("{}");
  CHECK(cake.layer.height == 2);
  CHECK(cake.candles == 0);
  CHECK_FALSE(cake.eaten);
  CHECK(cake.price == 2.5);
  CHECK(cake.size == std::nullopt);
  CHECK(cake.slices.empty());
}

TEST_CASE("every kind of value is read, in short and as an object") {
  const Cake cake = read(R"({"layer": 4, "candles": 7, "eaten": true, "price": 3, "size": "2 KB",
                             "slices": [3, 5]})");
  CHECK(cake.layer.height == 4);
  CHECK(cake.candles == 7);
  CHECK(cake.eaten);
  CHECK(cake.price == 3);
  CHECK(cake.size == 2_KB);
  CHECK(cake.slices == std::vector<int>{3, 5});
  const Cake other = read(R"({"layer": {"height": 3, "sweetness": "dry"}})");
  CHECK(other.layer.height == 3);
  CHECK(other.layer.sweetness == Sweetness::dry);
  CHECK(read(R"({"sweet": "dry"})").layer.sweetness == Sweetness::dry);
}

TEST_CASE("what is wrong is refused where it stands") {
  CHECK_THAT(refused(R"({"candles": 0})"),
             StartsWith("cake.json: /candles: expected a whole number from 1 to 1000000, found 0"));
  CHECK_THAT(refused(R"({"layer": 10})"),
             StartsWith("cake.json: /layer: expected a whole number from 1 to 9"));
  CHECK_THAT(refused(R"({"layer": {"sweetness": "dry"}})"),
             StartsWith("cake.json: /layer: expected the key \"height\""));
  CHECK_THAT(
      refused(R"({"layer": {"height": 1, "sweetness": "drry"}})"),
      StartsWith("cake.json: /layer/sweetness: expected one of") && ContainsSubstring("\"dry\""));
  CHECK_THAT(refused(R"({"slices": [1]})"), StartsWith("cake.json: /slices: expected a list of 2"));
  CHECK_THAT(refused(R"({"slices": [1, "2"]})"), StartsWith("cake.json: /slices/1: expected"));
  CHECK_THAT(refused(R"({"price": 0})"), StartsWith("cake.json: /price: expected a number above"));
  CHECK_THAT(refused(R"({"price": 101})"), ContainsSubstring("of at most 100"));
  CHECK_THAT(refused(R"({"size": "0 B"})"),
             StartsWith("cake.json: /size: expected a size above zero"));
  CHECK_THAT(refused(R"({"candels": 3})"), ContainsSubstring("did you mean \"candles\"?"));
}

TEST_CASE("of several kinds of object the first key tells which it is") {
  const OptionList<Layer> high = {
      {"high", &Layer::height, whole(5, 9), "a high one", must_be_there}};
  const OptionList<Layer> low = {{"low", &Layer::height, whole(1, 4), "a low one", must_be_there},
                                 {"sweetness", &Layer::sweetness, sweetness(), "how sweet"}};
  const auto any = either(converted<Layer>(flag(), [](bool) { return Layer{}; }),
                          {object_of(high, Layer{.sweetness = Sweetness::dry}), object_of(low)});
  const auto layer = [&](const std::string& text) {
    return any.read(JsonReader::from_text(text, "cake.json"));
  };
  CHECK(layer(R"({"high": 6})").height == 6);
  CHECK(layer(R"({"high": 6})").sweetness == Sweetness::dry);
  CHECK(layer(R"({"low": 3})").height == 3);
  CHECK(layer(R"({"low": 3})").sweetness == Sweetness::sweet);
  CHECK(layer("true").height == 2);
  CHECK_THAT(refusal([&] { layer(R"({"medium": 3})"); }),
             ContainsSubstring("one of the keys \"high\", \"low\""));
}

TEST_CASE("the schema has ranges, words, defaults and the keys that must be there") {
  const JsonReader schema = JsonReader::from_text(cake_schema().text(), "schema");
  CHECK(schema.at("description").text() == "A cake.");
  CHECK_FALSE(schema.at("additionalProperties").boolean());
  CHECK_FALSE(schema.has("required"));
  const JsonReader properties = schema.at("properties");
  const auto says = [&](const std::string& key) {
    return properties.at(key).at("description").text();
  };
  CHECK(says("eaten") == "whether it is gone (default false)");
  CHECK(says("price") == "price (default 2.5)");
  CHECK(says("sweet") == "taste (default sweet)");
  CHECK(says("candles") == "candles on it (default none)");
  CHECK(properties.at("slices").at("minItems").whole_number() == 2);
  const auto layer = properties.at("layer").at("anyOf").elements();
  REQUIRE(layer.size() == 2);
  CHECK(layer[0].at("minimum").whole_number() == 1);
  CHECK(layer[0].at("maximum").whole_number() == 9);
  CHECK(layer[1].at("required").elements().at(0).text() == "height");
  const auto words = layer[1].at("properties").at("sweetness").at("enum").elements();
  CHECK(words.at(1).text() == "sweet");
}

TEST_CASE("rows of a table tell values, default and sentence, those of objects below their own") {
  CHECK(rows_of({cake_options().begin(), cake_options().end()}) ==
        "| `layer` | 1 to 9 or object | 2 | its layer |\n"
        "| `layer`: `height` | 1 to 9 | must be there | as the number alone |\n"
        "| `layer`: `sweetness` | `dry`, `sweet` | sweet | how sweet |\n"
        "| `sweet` | `dry`, `sweet` | sweet | taste |\n"
        "| `candles` | 1 to 1000000 | none | candles on it |\n"
        "| `eaten` | `true` or `false` | false | whether it is gone |\n"
        "| `price` | a number above 0, of at most 100 | 2.5 | price |\n"
        "| `size` | size | unknown | how large |\n"
        "| `slices` | list: 1 to 1000000 | whole | who gets what |\n");
}

}  // namespace stratagem::options_test
