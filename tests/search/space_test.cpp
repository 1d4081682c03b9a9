// What a scenario's "search" means: which combinations there are, and which settings each has.
#include "search/space.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"
#include "tests/catch.hpp"
#include "tests/search/small_space.hpp"

namespace stratagem::search {
namespace {

using nlohmann::json;

/// All that keep the space to the keys of a test.
const std::string fixed =
    R"({"tensor": 1, "pipeline": 1, "zero": 0, "recompute": "none", "schedule": "1f1b",)"
    R"( "sequence_parallel": false})";

json settings(const Space& space, std::size_t number) {
  return json::parse(space.settings(number).text());
}

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  try {
    read(folder, text);
  } catch (const InputError& error) {
    return error.path + ": " + error.expected + " | " + error.found;
  }
  return "";
}

}  // namespace

TEST_CASE(
    "combinations are numbered with the last key fastest, and have data ranks that are left") {
  const TemporaryFolder folder;
  const Space space = read(
      folder, small_space(R"({"micro_batch": [1, 2], "tensor": [1, 2], "pipeline": [2, null]})",
                          R"({"zero": 1, "recompute": "none", "schedule": "1f1b",)"
                          R"( "sequence_parallel": false})"));
  REQUIRE(space.size() == 8);
  const auto expected = [&](int micro_batch, int tensor, int pipeline, int data) {
    json strategy = {{"tensor", tensor}, {"data", data}};
    if (pipeline > 0) strategy["pipeline"] = pipeline;
    return json{{"cluster", json::object()},
                {"training", {{"micro_batch", micro_batch}}},
                {"strategy", strategy}};
  };
  CHECK(settings(space, 0) == expected(1, 1, 2, 2));
  CHECK(settings(space, 1) == expected(1, 1, 0, 4));
  CHECK(settings(space, 2) == expected(1, 2, 2, 1));
  CHECK(settings(space, 7) == expected(2, 2, 0, 2));
  CHECK(space.words(2) == "micro_batch 1, tensor 2, pipeline 2");
}

TEST_CASE("degrees that neither the search nor the defaults name are left alone, and told") {
  const TemporaryFolder folder;
  const auto left = [&](const std::string& search, const std::string& strategy) {
    return read(folder, small_space(search, strategy)).degrees_left_alone();
  };
  CHECK(left(R"({"tensor": [1, 2]})", "{}") ==
        std::vector<std::string>{"expert", "dap", "context", "ulysses"});
  CHECK(left(R"({"context": [1, 2]})", R"({"ulysses": 1})") ==
        std::vector<std::string>{"expert", "dap"});
}

TEST_CASE("a key that nobody names takes what its option declares as worth trying") {
  const TemporaryFolder folder;
  const Space all = read(folder, small_space("{}"));
  std::set<std::string> swept, declared = {"micro_batch"};
  for (const Dimension& one : all.dimensions()) swept.insert(one.key);
  for (const OptionText& option : strategies::option_texts()) {
    if (!option.tried.empty() && option.tried_where.empty()) declared.insert(option.key);
  }
  CHECK(swept == declared);
  CHECK(read(folder, small_space("{}", fixed)).dimensions().size() == 1);
  CHECK(read(folder, small_space("{}", fixed, R"(, "micro_batch": 1)")).size() == 1);
  // What the search names counts, whatever the defaults say.
  CHECK(read(folder, small_space(R"({"zero": "any"})", fixed, R"(, "micro_batch": 1)")).size() ==
        4);
}

TEST_CASE("degrees worth trying are powers of two, and what else divides the GPUs") {
  const TemporaryFolder folder;
  const auto values = [&](const std::string& text, const std::string& key) {
    std::vector<std::string> all;
    const Space space = read(folder, text);
    const auto one = std::ranges::find(space.dimensions(), key, &Dimension::key);
    if (one != space.dimensions().end())
      for (const Json& value : one->values) all.push_back(value.text());
    return all;
  };
  using Words = std::vector<std::string>;
  std::string text = small_space("{}");
  CHECK(values(text, "tensor") == Words{"1", "2", "4", "8"});
  text.replace(text.find("\"gpus\": 4"), 9, "\"gpus\": 24");
  CHECK(values(text, "tensor") == Words{"1", "2", "3", "4", "6", "8"});
  CHECK(values(text, "pipeline") ==
        Words{"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "64"});
  CHECK(values(text, "expert").empty());
  text.replace(text.find("\"layers\": 4"), 11, "\"layers\": 4, \"experts\": 8");
  CHECK(values(text, "expert") ==
        Words{"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "64"});
  CHECK(values(small_space(R"({"gpus": [6, 4]})"), "tensor") ==
        Words{"1", "2", "3", "4", "6", "8"});
}

TEST_CASE("every key of a search acts") {
  const TemporaryFolder folder;
  const json keys = json::parse(schema_of_search().text()).at("properties");
  CHECK(keys.size() == strategies::option_texts().size() + 2);
  for (const auto& [key, values] : keys.items()) {
    INFO(key);
    // Null is a value of every key; with and without it there are twice as many combinations.
    const std::string list =
        key == "gpus" ? "[4, 2]"
                      : "[null, " + std::string(key == "micro_batch" ? "1" : "null") + "]";
    if (key == "gpus" || key == "micro_batch") {
      CHECK(read(folder, small_space("{\"" + key + "\": " + list + "}", fixed,
                                     key == "gpus" ? R"(, "micro_batch": 1)" : ""))
                .size() == 2);
    } else {
      CHECK(refusal(small_space("{\"" + key + "\": " + list + "}", fixed)) ==
            "/search/" + key + "/1: values that differ | null");
      CHECK_FALSE(refusal(small_space("{\"" + key + "\": [{\"no such\": 1}]}", fixed)).empty());
    }
  }
}

TEST_CASE("numbers of GPUs may be halved down to what is odd") {
  const TemporaryFolder folder;
  const Space space =
      read(folder, small_space(R"({"gpus": {"at_most": 12}})", fixed, R"(, "micro_batch": 1)"));
  REQUIRE(space.size() == 3);
  for (const auto& [number, gpus] : {std::pair(0, 12), {1, 6}, {2, 3}}) {
    CHECK(settings(space, number).at("cluster").at("gpus") == gpus);
    CHECK(settings(space, number).at("strategy").at("data") == gpus);
  }
}

TEST_CASE("values that nobody lists are left out where they are not worth trying") {
  const TemporaryFolder folder;
  const auto left_out = [&](const std::string& zero) {
    const Space space =
        read(folder, small_space(R"({"tensor": [1, 4], "zero": )" + zero +
                                 R"(, "micro_batch": [1],)"
                                 R"( "pipeline": [1], "schedule": ["1f1b"], "recompute": ["none"],)"
                                 R"( "sequence_parallel": "any"})"));
    std::size_t count = 0;
    for (std::size_t i = 0; i < space.size(); ++i) count += space.leaves_out(i) ? 1 : 0;
    return std::pair(space.size(), count);
  };
  // One tensor rank divides no tokens: half of the plans with it are left out. With four of them
  // there is one data rank: of its plans all with ZeRO are, unless someone lists them.
  CHECK(left_out("[0, 1, 2, 3]") == std::pair<std::size_t, std::size_t>(16, 4));
  CHECK(left_out("\"any\"") == std::pair<std::size_t, std::size_t>(16, 4 + 2 * 3));
}

TEST_CASE("a search says what is wrong with it") {
  CHECK(refusal(small_space(R"({"tensr": [1]})")).starts_with("/search/tensr"));
  CHECK(refusal(small_space(R"({"tensor": []})")) ==
        "/search/tensor: a list of at least one value | []");
  CHECK(refusal(small_space(R"({"tensor": ["two"]})")).starts_with("/search/tensor/0: "));
  CHECK(refusal(small_space(R"({"expert": "any"})"))
            .starts_with("/search/expert: a list of values, such as [2] | "));
  CHECK(refusal(small_space(R"({"tensor": 2})"))
            .starts_with("/search/tensor: a list of values, such as [2], or \"any\""));
  CHECK(refusal(small_space(R"({"tensor": "all"})")).starts_with("/search/tensor: "));
  CHECK(refusal(with(small_space("{}"), R"(, "gpus": 4)", "")).starts_with("/defaults/cluster: "));
  CHECK(refusal(small_space(R"({"micro_batch": ["two"]})")).starts_with("/search/micro_batch/0: "));
  CHECK(refusal(small_space(R"({"gpus": [0]})")).starts_with("/search/gpus/0: "));
  const std::string divisions = refusal(small_space(R"({"layers_per_stage": ["pipedream"]})"));
  CHECK(divisions.starts_with("/search/layers_per_stage/0: "));
  CHECK(divisions.find("or balanced") != std::string::npos);
  std::string many = "[1";
  for (int i = 2; i <= 1001; ++i) many += ", " + std::to_string(i);
  many += "]";
  CHECK(refusal(small_space(R"({"tensor": )" + many + R"(, "pipeline": )" + many + "}"))
            .starts_with("/search: at most 1000000 combinations"));
}

}  // namespace stratagem::search
