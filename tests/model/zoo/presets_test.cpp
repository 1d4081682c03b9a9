// Published models by name: their numbers of parameters, and what users change of them.
#include "model/zoo/presets.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"
#include "model/zoo/all.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::presets_test {

namespace {

Graph build(const std::string& text) {
  const JsonReader model = with_preset(JsonReader::from_text(text, "test.json"));
  return *std::ranges::find(families(), model.at("family").text(), &Family::name)
              ->build(model, 1, {DataType::bf16, DataType::bf16});
}

}  // namespace

TEST_CASE("presets have as many parameters as the released models") {
  // Of the tensors on huggingface.co; GPT-3 was not released, its paper has 175.0 billion (table
  // 2.1).
  struct Released {
    double parameters;
    double within = 0;
  };
  const std::map<std::string, Released> released = {
      {"gpt-2-xl", {1'557'611'200}},
      {"gpt-3-175b", {175.0e9, 0.005}},
      {"bert-large", {336'226'108}},
      {"llama-2-7b", {6'738'415'616}},
      {"llama-2-13b", {13'015'864'320}},
      {"llama-2-70b", {68'976'648'192}},
      {"llama-3-8b", {8'030'261'248}},
      {"llama-3-70b", {70'553'706'496}},
      {"llama-3-405b", {405'853'388'800}},
      {"mixtral-8x7b", {46'702'792'704}},
      {"qwen3-8b", {8'190'735'360}},
      {"qwen3-14b", {14'768'307'200}},
      {"qwen3-30b-a3b", {30'532'122'624}},
      {"qwen3-235b-a22b", {235'093'634'560}},
      {"deepseek-v3", {671'026'419'200}},
      {"kimi-k2", {1'026'408'232'448}},
      {"gpt-oss-20b", {20'914'757'184}},
      {"gpt-oss-120b", {116'829'156'672}},
      {"vit-large", {304'326'632}},
      {"vit-huge", {632'045'800}},
      {"swin-large", {196'532'476}},
      // Printed: 3.2 and 12.5, 9.4 and 331.6 billion, of embeddings and of the rest.
      {"nemotron-4-15b", {15.7e9, 0.006}},
      {"nemotron-4-340b", {341.0e9, 0.0005}}};
  CHECK(presets().size() == released.size());
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const std::int64_t count = parameter_count(build(R"({"preset": ")" + preset.name + "\"}"));
    const Released& known = released.at(preset.name);
    CHECK(std::abs(static_cast<double>(count) / known.parameters - 1) <= known.within);
  }
}

TEST_CASE("what a preset says is refused where the model stands") {
  const JsonReader file =
      JsonReader::from_text(R"({"runs": [{"model": {"preset": "mixtral-8x7b"}}]})", "test.json");
  const JsonReader model = with_preset(file.at("runs").elements().front().at("model"));
  CHECK(model.at("experts").file() == "test.json");
  CHECK(model.at("experts").path() == "/runs/0/model/experts");
}

TEST_CASE("keys beside a preset change it, but for its family") {
  const Graph graph =
      build(R"({"preset": "mixtral-8x7b", "layers": 2, "sequence": 64, "experts": 4})");
  CHECK(graph.segments.size() == 2 + 2);
  CHECK(graph.sample_tokens == 64);
  // 32 - 2 layers less, and 4 experts of three matrices and their routers' rows.
  const std::int64_t h = 4096, expert = 3 * h * 14336 + h;
  const std::int64_t layer = 2 * h * h + 2 * h * 1024 + 2 * h + 8 * expert;
  CHECK(parameter_count(graph) == 46'702'792'704 - 30 * layer - 2 * 4 * expert);
  CHECK_THROWS_AS(build(R"({"preset": "mixtral-8x7b", "family": "gpt"})"), InputError);
  CHECK_THROWS_AS(build(R"({"preset": "mixtral-8x7"})"), InputError);
}

}  // namespace stratagem::model::presets_test
