// Selectors against lists written by hand, and summaries against the selectors that read them.
#include "strategies/language/selector.hpp"

#include <random>
#include <set>

#include "base/input_error.hpp"
#include "model/zoo/gpt.hpp"
#include "strategies/language/glob.hpp"
#include "strategies/language/summary.hpp"
#include "tests/catch.hpp"

namespace stratagem::strategies::selector_test {

namespace {

using Names = std::vector<std::string>;

/// Twelve layers, so that numbers have one and two digits, in two stages.
struct Example {
  model::Graph graph = model::gpt(
      {.layers = 12, .hidden = 48, .heads = 8, .sequence = 20, .vocabulary = 112, .batch = 12});
  std::vector<std::vector<int>> stages = {{0, 1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12, 13}};
  SelectorScope scope{graph, stages, {{"i", 1}}};
};

const Example& example() {
  static const Example value;
  return value;
}

Names all_names() {
  Names names;
  for (const model::Segment& segment : example().graph.segments) {
    for (const model::OpId op : segment.forward)
      names.push_back(example().graph.operators[op].name);
  }
  return names;
}

Names selected(const std::string& selector) {
  Names names;
  for (const model::OpId op : select_operators(selector, example().scope, "/plan/0"))
    names.push_back(example().graph.operators[op].name);
  return names;
}

std::string refusal(const std::string& selector) {
  try {
    selected(selector);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool matches(const std::string& glob, const std::string& name) {
  return Glob(glob, "").matches(name);
}

/// All names that begin like this.
Names beginning(const std::string& begin) {
  Names names;
  for (const std::string& name : all_names()) {
    if (name.starts_with(begin)) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("patterns match names part by part") {
  CHECK(matches("a.b", "a.b"));
  CHECK_FALSE(matches("a.b", "a.b.c"));
  CHECK_FALSE(matches("a.b", "a"));
  CHECK(matches("a.*.c", "a.b.c"));
  CHECK_FALSE(matches("a.*.c", "a.b.b.c"));
  CHECK(matches("a.**.c", "a.b.b.c"));
  CHECK(matches("a.**.c", "a.c"));
  CHECK(matches("a.**", "a"));
  CHECK(matches("**.c", "a.b.c"));
  CHECK(matches("**", "a.b.c"));
  CHECK(matches("**.**.b.**", "a.b.c"));
  CHECK_FALSE(matches("**.d.**", "a.b.c"));
  CHECK(matches("fc*", "fc1"));
  CHECK(matches("*_norm", "mlp_norm"));
  CHECK_FALSE(matches("fc*", "f"));
  CHECK(matches("{a,b}.c", "b.c"));
  CHECK(matches("{a.b,c}.d", "a.b.d"));
  CHECK(matches("x.{a,b{1,2}}", "x.b2"));
  CHECK_FALSE(matches("x.{a,b{1,2}}", "x.b"));
}

TEST_CASE("ranges match whole numbers without leading zeros") {
  CHECK(matches("layers.[2-11]", "layers.2"));
  CHECK(matches("layers.[2-11]", "layers.11"));
  CHECK_FALSE(matches("layers.[2-11]", "layers.12"));
  CHECK_FALSE(matches("layers.[2-11]", "layers.1"));
  CHECK_FALSE(matches("layers.[0-3]", "layers.03"));
  CHECK_FALSE(matches("layers.[1-3]", "layers.15"));
  CHECK_FALSE(matches("layers.[0-3]", "layers.x"));
  CHECK(matches("block[0-1]_[5-5]", "block1_5"));
  CHECK(matches("{[0-1],[4-5]}", "4"));
}

TEST_CASE("selectors name operators of a GPT") {
  Names fc1;
  for (int layer = 0; layer < 12; ++layer)
    fc1.push_back("layers." + std::to_string(layer) + ".mlp.fc1");
  CHECK(selected("layers.*.mlp.fc1") == fc1);
  CHECK(selected("layers.[0-11].mlp.fc1") == fc1);
  CHECK(selected("**.fc1") == fc1);
  CHECK(selected("layers.{0,2}.mlp.fc1") == Names{fc1[0], fc1[2]});
  CHECK(selected("layers.2.mlp.fc1, layers.0.mlp.fc1 ,layers.2.mlp.fc1") == Names{fc1[0], fc1[2]});
  CHECK(selected("layers.3.**") == beginning("layers.3."));
  CHECK(selected("head.**") == beginning("head."));
  CHECK(selected("**") == all_names());
}

TEST_CASE("stage(x) names all operators of a stage") {
  Names first = beginning("embedding.");
  for (int layer = 0; layer < 6; ++layer) {
    const Names more = beginning("layers." + std::to_string(layer) + ".");
    first.insert(first.end(), more.begin(), more.end());
  }
  CHECK(selected("stage(0)") == first);
  CHECK(selected("stage( i - min(1, S) )") == first);
  CHECK(selected("stage(i)").size() == all_names().size() - first.size());
  CHECK(selected("stage(S-1)") == selected("stage(i)"));
  CHECK(selected("stage(0), stage(1)") == all_names());
}

TEST_CASE("selectors name segments too") {
  const SelectorScope& scope = example().scope;
  CHECK(select_segments("layers.[0-2]", scope, "") == std::vector<int>{1, 2, 3});
  CHECK(select_segments("embedding, head", scope, "") == std::vector<int>{0, 13});
  CHECK(select_segments("stage(1)", scope, "") == example().stages[1]);
  CHECK_THROWS_AS(select_segments("layers.12", scope, ""), InputError);
}

TEST_CASE("selectors that name nothing are refused, and the nearest is told") {
  const std::string at = "/plan/0: expected a selector that names at least one operator";
  CHECK(refusal("layers.*.mlp.fc3") ==
        at + " (did you mean \"layers.*.mlp.fc1\"?), found \"layers.*.mlp.fc3\"");
  CHECK(refusal("layer.3.**") == at + " (did you mean \"layers.3.**\"?), found \"layer.3.**\"");
  CHECK(refusal("head.**, embeding.lookup") ==
        at + " (did you mean \"embedding.lookup\"?), found \"embeding.lookup\"");
  CHECK(refusal("layers.[0-11].atention.{qkv,softmax}") ==
        at + " (did you mean \"layers.[0-11].attention.{qkv,softmax}\"?), found "
             "\"layers.[0-11].atention.{qkv,softmax}\"");
  CHECK(refusal("*") == at + ", found \"*\"");
  CHECK(refusal("stage(2)") == "/plan/0: expected a stage from 0 to 1 in \"stage(2)\", found 2");
  CHECK(refusal("stage(j)") ==
        "/plan/0: expected one of the names S, i at column 1 of \"j\", found \"j\"");
}

TEST_CASE("text that is no selector is refused") {
  const std::string parts =
      "/plan/0: expected parts between dots that have letters, are \"*\" or are \"**\", found ";
  for (const std::string text : {"", "a..b", ".a", "a.", "a**", "***"})
    CHECK(refusal(text) == parts + "\"" + text + "\"");
  for (const std::string text : {"{a,b", "a}", "{a}}"})
    CHECK(refusal(text) == "/plan/0: expected braces in pairs, found \"" + text + "\"");
  for (const std::string text :
       {"[3-1]", "[ab]", "[1]", "[1-", "[1-2", "[-1-2]", "[0-99999999999999999999]"})
    CHECK(refusal(text) == "/plan/0: expected ranges such as [0-3], found \"" + text + "\"");
  std::string many;
  for (int i = 0; i < 20; ++i) many += "{a,b}";
  CHECK_THAT(refusal(many), ContainsSubstring("at most 10000 choices in braces"));
}

TEST_CASE("summaries are as short as one would write them") {
  const auto summary = [](const std::string& selector) {
    return summarize(selected(selector), all_names());
  };
  for (const std::string text :
       {"**", "head.**", "layers.*.mlp.fc1", "layers.[0-3].**", "layers.{0,2}.mlp.*",
        "layers.{0,[4-11]}.mlp.fc1", "layers.*.mlp.{fc1,fc2}", "layers.*.mlp.fc1.**",
        "layers.5.input_norm", "embedding.**, layers.[0-5].**"}) {
    INFO(text);
    CHECK(summary(text) == text);
  }
  CHECK(summary("layers.*.**") == "layers.**");
  CHECK(summary("layers.[0-1].mlp.fc1") == "layers.{0,1}.mlp.fc1");
  CHECK(summarize({}, all_names()).empty());
  // Layer 5 as a whole lets the star stand for it as well.
  CHECK(summary("layers.*.mlp.fc1, layers.5.**") == "layers.*.mlp.fc1, layers.5.**");
  // A name that is the beginning of others is not named by **, which would name them.
  CHECK(summarize({"loss.a", "loss.b"}, {"loss", "loss.a", "loss.b"}) == "loss.*");
  CHECK(summarize({"loss"}, {"loss", "loss.a", "loss.b"}) == "loss");
  CHECK(summarize({"loss", "loss.a", "loss.b"}, {"x", "loss", "loss.a", "loss.b"}) == "loss.**");
}

TEST_CASE("a summary of names that are not among all is a broken promise") {
  CHECK_THROWS_AS(summarize({"a"}, {"b"}), BrokenPromise);
  CHECK_THROWS_AS(summarize({"a"}, {"a", "a"}), BrokenPromise);
}

TEST_CASE("selecting by a summary gives back what was summarized") {
  std::mt19937 random(3);
  const Names all = all_names();
  for (int round = 0; round < 120; ++round) {
    // Single names, whole kinds and whole layers, more or fewer of them.
    const unsigned density = 1 + round % 10;
    std::set<std::string> parts;
    for (const std::string& name : all) {
      const std::string kind = name.substr(name.rfind('.'));
      if (random() % 200 < density) parts.insert(name);
      if (random() % 2000 < density) parts.insert(kind);
      if (random() % 2000 < density) parts.insert(name.substr(0, name.find('.', 7)));
    }
    Names chosen;
    for (const std::string& name : all) {
      const bool of_kind = parts.contains(name.substr(name.rfind('.')));
      const bool of_layer = parts.contains(name.substr(0, name.find('.', 7)));
      if (of_kind || of_layer || parts.contains(name)) chosen.push_back(name);
    }
    const std::string summary = summarize(chosen, all);
    INFO(summary);
    REQUIRE(chosen.empty() == summary.empty());
    if (!chosen.empty()) REQUIRE(selected(summary) == chosen);
  }
}

}  // namespace stratagem::strategies::selector_test
