// TOML and YAML as JSON.
#include "imports/documents.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "tests/catch.hpp"

namespace stratagem::imports {
namespace {

JsonReader yaml(const std::string& text) {
  return JsonReader::from_text(json_of_yaml(text, "test"), "test");
}

TEST_CASE("TOML has tables, numbers and lists as JSON has them") {
  const JsonReader json = JsonReader::from_text(
      json_of_toml("# a comment\n[a]\nb = 1.5e-4\n[a.c]\nd = [\"x\", \"y\"]\ne = true\n", "test"),
      "test");
  CHECK(json.at("a").at("b").number() == 1.5e-4);
  CHECK(json.at("a").at("c").at("d").elements().back().text() == "y");
  CHECK(json.at("a").at("c").at("e").boolean());
  try {
    json_of_toml("[a]\nb = = 1\n", "run.toml");
    FAIL("no TOML");
  } catch (const InputError& error) {
    CHECK(error.file == "run.toml");
    CHECK(error.path == "/line 2");
  }
}

TEST_CASE("YAML's values are text, its true and false as JSON's; null and ??? say nothing") {
  const JsonReader json =
      yaml("a:\n  b: 5e7  # elements\n  c: True\n  d: null\n  e: ???\n  f: [x, 2]\n");
  CHECK(json.at("a").at("b").text() == "5e7");
  CHECK(json.at("a").at("c").text() == "true");
  CHECK(json.at("a").at("d").is_null());
  CHECK(json.at("a").at("e").is_null());
  CHECK(json.at("a").at("f").dump() == R"(["x","2"])");
  CHECK_THROWS_AS(yaml("a: [1, 2\nb: }"), InputError);
}

TEST_CASE("references of OmegaConf are replaced: from the root, beside the value, and products") {
  const JsonReader model =
      yaml(
          "trainer:\n  nodes: 4\nmodel:\n  hidden: 12288\n"
          "  ffn: ${multiply:4, ${.hidden}}\n  nodes: ${trainer.nodes}\n"
          "  deep:\n    hidden: ${..hidden}\n    name: a-${.hidden}-${.other}\n"
          "  launched: ${training.model.hidden}\n  circle: ${.circle}\n")
          .at("model");
  CHECK(model.at("ffn").text() == "49152");
  CHECK(model.at("nodes").text() == "4");
  CHECK(model.at("deep").at("hidden").text() == "12288");
  CHECK(model.at("deep").at("name").text() == "a-12288-${.other}");
  CHECK(model.at("launched").text() == "12288");
  CHECK(model.at("circle").text() == "${.circle}");
}

}  // namespace
}  // namespace stratagem::imports
