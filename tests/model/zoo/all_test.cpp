// How configurations of model families are read, and what they refuse.
#include "model/zoo/all.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::all_test {

namespace {

Graph build(const std::string& text, const std::string& family = "gpt") {
  return *std::ranges::find(families(), family, &Family::name)
              ->build(JsonReader::from_text(text, "test.json"), 2,
                      {DataType::bf16, DataType::bf16});
}

std::string refusal(const std::string& text, const std::string& family = "gpt") {
  try {
    build(text, family);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every family has a name and a summary") {
  REQUIRE_FALSE(families().empty());
  for (const Family& family : families()) {
    CHECK_FALSE(family.name.empty());
    CHECK_FALSE(family.summary.empty());
    REQUIRE(family.build != nullptr);
  }
}

TEST_CASE("equal graphs in use are one, and differ by all that they follow from") {
  const auto gpt = std::ranges::find(families(), "gpt", &Family::name);
  const auto made = [&](const std::string& frozen, std::int64_t batch, const NumberTypes& types) {
    const std::string text = R"({"layers": 2, "hidden": 8, "heads": 2, "sequence": 4,
                                 "vocabulary": 16)" +
                             frozen + "}";
    return gpt->build(JsonReader::from_text(text, "test.json"), batch, types);
  };
  const NumberTypes half{DataType::fp16, DataType::fp16};
  const NumberTypes wide_gradients{DataType::fp16, DataType::fp32};
  const auto first = made("", 2, half);
  CHECK(made("", 2, half) == first);
  CHECK(made("", 3, half)->tensors.front().shape != first->tensors.front().shape);
  CHECK(made("", 2, wide_gradients)->held_gradients == DataType::fp32);
  const auto some = made(R"(, "frozen": ["layers.0.*"])", 2, wide_gradients);
  CHECK(some->held_gradients == DataType::fp32);
  CHECK(some->operators.size() < first->operators.size());
  CHECK(made("", 2, half) == first);
  CHECK(first->held_gradients == DataType::fp16);
}

TEST_CASE(
    "every size of a model tells its values, default and use, and is refused beyond its range") {
  for (const Family& family : families()) {
    for (const OptionText& option : family.options) {
      INFO(family.name << ": " << option.key);
      CHECK_FALSE(option.sentence.empty());
      CHECK_FALSE(option.words.empty());
      CHECK_FALSE(option.usual.empty());
      const JsonReader schema = JsonReader::from_text(option.schema.text(), option.key);
      if (!schema.has("type") || schema.at("type").text() != "integer") continue;
      const auto least = schema.at("minimum").whole_number();
      const auto most = schema.at("maximum").whole_number();
      for (const std::int64_t value : {least - 1, most + 1}) {
        Json config = Json::object();
        for (const OptionText& other : family.options) {
          if (other.key == option.key) {
            config.set(other.key, value);
          } else if (other.required()) {
            const bool list = other.schema.text().find("\"array\"") != std::string::npos;
            config.set(other.key, list ? Json::array().push(1) : Json(8));
          }
        }
        CHECK(refusal(config.text(), family.name) ==
              "test.json: /" + option.key + ": expected a whole number from " +
                  std::to_string(least) + " to " + std::to_string(most) + ", found " +
                  std::to_string(value));
      }
    }
  }
}

TEST_CASE("a GPT is read from its five sizes, with the batch and type of the training") {
  const Graph graph =
      build(R"({"layers": 3, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 11})");
  CHECK(graph.segments.size() == 3 + 2);
  // 12Lh^2 + 13Lh + (V + s + 2)h = 12*3*64 + 13*3*8 + 17*8.
  CHECK(parameter_count(graph) == 2304 + 312 + 136);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter) CHECK(tensor.type == DataType::bf16);
    if (tensor.name == "embedding.tokens") CHECK(tensor.shape == std::vector<std::int64_t>{2, 4});
  }
}

TEST_CASE("a GPT's table for logits and its experts are read") {
  const std::string sizes =
      R"({"layers": 4, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 11, )";
  const std::int64_t dense = parameter_count(build(sizes + R"("tied": true})"));
  CHECK(parameter_count(build(sizes + R"("tied": false})")) == dense + 11 * 8);
  // Two of four layers: a router of 3 * 8, two more MLPs of 8 * 8^2 + 5 * 8.
  const Graph mixture = build(sizes + R"("experts": 3, "experts_per_token": 2, "moe_every": 2,
    "capacity_factor": 1.5})");
  CHECK(parameter_count(mixture) == dense + 2 * (3 * 8 + 2 * (8 * 64 + 40)));
  for (const Tensor& tensor : mixture.tensors) {  // 2 samples * 2 * 4 * 1.5 / 3 slots an expert
    if (tensor.name == "layers.1.mlp.dispatch.out")
      CHECK(tensor.shape == std::vector<std::int64_t>{3, 2 * 4, 8});
  }
  CHECK_THAT(refusal(sizes + R"("experts": 3, "experts_per_token": 4})"),
             StartsWith("test.json: /experts_per_token: "));
  CHECK_THAT(refusal(sizes + R"("experts": 3, "capacity_factor": 0})"),
             StartsWith("test.json: /capacity_factor: "));
}

TEST_CASE("a Llama's experts are read as a GPT's, each with three matrices") {
  const std::string sizes = R"({"layers": 4, "hidden": 8, "heads": 2, "intermediate": 12,)"
                            R"( "sequence": 4, "vocabulary": 11)";
  const std::int64_t dense = parameter_count(build(sizes + "}", "llama"));
  const Graph mixture = build(sizes + R"(, "experts": 3, "experts_per_token": 2, "moe_every": 2,
    "capacity_factor": 1.5})",
                              "llama");
  CHECK(parameter_count(mixture) == dense + 2 * (3 * 8 + 2 * 3 * 8 * 12));
  for (const Tensor& tensor : mixture.tensors) {  // 2 samples * 2 * 4 * 1.5 / 3 slots an expert
    if (tensor.name == "layers.1.mlp.swiglu.out")
      CHECK(tensor.shape == std::vector<std::int64_t>{3, 2 * 4, 12});
  }
  CHECK_THAT(refusal(sizes + R"(, "experts": 3, "experts_per_token": 4})", "llama"),
             StartsWith("test.json: /experts_per_token: "));
  CHECK_THAT(refusal(sizes + R"(, "experts": 3, "moe_every": 5})", "llama"),
             StartsWith("test.json: /moe_every: "));
}

TEST_CASE("a GPT's width, activation, dropout and attention are read") {
  const std::string sizes =
      R"({"layers": 1, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 11, )";
  const std::int64_t usual = parameter_count(build(sizes + R"("dropout": true})"));
  CHECK(parameter_count(build(sizes + R"("intermediate": 12})")) == usual - 2 * 20 * 8 - 20);
  const auto has = [&](const std::string& keys, OpKind kind) {
    const Graph graph = build(sizes + keys + "}");
    return std::ranges::any_of(graph.operators,
                               [&](const Operator& op) { return op.kind == kind; });
  };
  CHECK(has(R"("activation": "relu")", OpKind::relu));
  CHECK(has(R"("dropout": true)", OpKind::dropout));
  CHECK_FALSE(has(R"("dropout": false)", OpKind::dropout));
  CHECK(has(R"("attention": "fused")", OpKind::fused_attention));
  CHECK_THAT(refusal(sizes + R"("intermediate": 0})"), StartsWith("test.json: /intermediate: "));
  CHECK_THAT(refusal(sizes + R"("activation": "selu"})"), StartsWith("test.json: /activation: "));
}

TEST_CASE("a Llama is read from its sizes, and heads must be shared out evenly") {
  const std::string sizes =
      R"({"layers": 2, "hidden": 16, "heads": 4, "intermediate": 24, "sequence": 8,)"
      R"( "vocabulary": 11)";
  // L(2h^2 + 2hk + 3hf + 2h) + 2Vh + h, with k = h where kv_heads are not given.
  CHECK(parameter_count(build(sizes + "}", "llama")) == 2 * (512 + 512 + 1152 + 32) + 352 + 16);
  const Graph shared = build(sizes + R"(, "kv_heads": 2, "tied": true})", "llama");
  CHECK(parameter_count(shared) == 2 * (512 + 256 + 1152 + 32) + 176 + 16);
  CHECK_THAT(refusal(sizes + R"(, "kv_heads": 3})", "llama"), StartsWith("test.json: /kv_heads: "));
  CHECK_THAT(refusal(sizes + R"(, "attention": "unfused", "repeat_keys": true})", "llama"),
             StartsWith("test.json: /repeat_keys: "));
  CHECK_THAT(refusal(sizes + R"(, "documents": 3})", "llama"),
             StartsWith("test.json: /documents: expected a number of documents that divides the "
                        "sequence's 8 tokens"));
  CHECK_THAT(refusal(sizes + R"(, "documents": [4, 3]})", "llama"),
             StartsWith("test.json: /documents: expected documents of the sequence's 8 tokens "
                        "together, found 7"));
  CHECK_THAT(refusal(sizes + R"(, "attention": "unfused", "documents": 2})", "llama"),
             StartsWith("test.json: /documents: expected \"attention\": \"fused\" beside it"));
  CHECK_THAT(refusal(sizes + R"(, "swiglu": "none"})", "llama"),
             StartsWith("test.json: /swiglu: "));
}

TEST_CASE("a T5 is read from its sizes") {
  const std::string sizes =
      R"({"layers": 2, "decoder_layers": 1, "hidden": 8, "heads": 2, "intermediate": 12,
          "sequence": 6, "decoder_sequence": 3, "vocabulary": 11)";
  // 2 (4h^2 + 2hf + 2h) + (8h^2 + 2hf + 3h) + 2h + 2 * 32 * heads + Vh.
  const std::int64_t usual = 2 * (256 + 192 + 16) + (512 + 192 + 24) + 16 + 128 + 88;
  CHECK(parameter_count(build(sizes + "}", "t5")) == usual);
  CHECK(parameter_count(build(sizes + R"(, "head_width": 6})", "t5")) ==
        usual + (2 * 4 + 8) * 8 * (12 - 8));
  CHECK(parameter_count(build(sizes + R"(, "tied": false, "activation": "gated-gelu"})", "t5")) ==
        usual + 88 + 3 * 96);
  CHECK(parameter_count(build(sizes + R"(, "bias_buckets": 0, "dropout": false})", "t5")) ==
        usual - 128);
  CHECK_THAT(refusal(sizes + R"(, "bias_buckets": 6})", "t5"),
             StartsWith("test.json: /bias_buckets: "));
  CHECK_THAT(refusal(sizes + R"(, "kind": "megatron", "bias_buckets": 8})", "t5"),
             StartsWith("test.json: /bias_buckets: "));
  const Graph megatron = build(sizes + R"(, "kind": "megatron"})", "t5");
  CHECK(std::ranges::count(megatron.operators, OpKind::gelu, &Operator::kind) > 0);
  CHECK(std::ranges::count(megatron.operators, OpKind::relu, &Operator::kind) == 0);
  CHECK_THAT(refusal(sizes + R"(, "activation": "swiglu"})", "t5"),
             StartsWith("test.json: /activation: "));
}

TEST_CASE("adapters are read, and refused where they make no sense") {
  const std::string sizes =
      R"({"layers": 2, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 11, )";
  const std::int64_t plain = parameter_count(build(sizes + R"("tied": true})"));
  const auto with = [&](const std::string& lora) { return sizes + "\"lora\": " + lora + "}"; };
  CHECK(parameter_count(build(with(R"({"rank": 3})"))) == plain + 2 * 3 * (8 + 24));
  CHECK(parameter_count(build(with(R"({"rank": 3, "of": ["*.fc1.weight"]})"))) ==
        plain + 2 * 3 * (8 + 32));
  for (const auto& [lora, path] :
       {std::pair{R"({"rank": 0})", "/lora/rank: "}, std::pair{"{}", "/lora: "},
        std::pair{R"({"rank": 3, "of": ["embedding.words"]})", "/lora/of/0: "},
        std::pair{R"({"rank": 3, "of": []})", "/lora/of: "},
        std::pair{R"({"rank": 3}, "prefix": 2)", "/lora: "}}) {
    CHECK_THAT(refusal(with(lora)), StartsWith(std::string("test.json: ") + path));
  }
  CHECK_THAT(
      refusal(R"({"layers": 1, "msa_rows": 4, "residues": 8, "lora": {"rank": 2}})", "evoformer"),
      StartsWith("test.json: /lora: expected \"of\""));
}

TEST_CASE("parameters are frozen by pattern, and prefixes are read") {
  const std::string sizes =
      R"({"layers": 2, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 11, )";
  const auto steps = [](const Graph& graph) {
    return std::ranges::count(graph.operators, Pass::optimizer, &Operator::pass);
  };
  CHECK(steps(build(sizes + R"("frozen": ["layers.*", "embedding.words"]})")) == 1 + 2);
  CHECK(steps(build(sizes + R"("prefix": 3})")) == 2 * 2);
  CHECK(steps(build(sizes + R"("prefix": 3, "frozen": ["*.prefix_keys"]})")) == 2);
  CHECK_THAT(refusal(sizes + R"("frozen": ["head.*", "layer.*"]})"),
             StartsWith("test.json: /frozen/1: expected a pattern of parameters' names"));
  CHECK_THAT(refusal(sizes + R"("frozen": ["*"]})"), StartsWith("test.json: /frozen: "));
  CHECK_THAT(refusal(sizes + R"("prefix": 0})"), StartsWith("test.json: /prefix: "));
  CHECK_THAT(refusal(sizes + R"("prefix": 3, "attention": "fused"})"),
             StartsWith("test.json: /prefix: "));
}

TEST_CASE("heads that do not divide the hidden size are refused where they stand") {
  const std::string text =
      refusal(R"({"layers": 1, "hidden": 8, "heads": 3, "sequence": 4, "vocabulary": 11})");
  CHECK_THAT(text, StartsWith("test.json: /heads: "));
  CHECK_THAT(text, ContainsSubstring("divisor of hidden, 8"));
  CHECK_THAT(text, ContainsSubstring("found 3"));
}

TEST_CASE("sizes below one and missing sizes are refused where they stand") {
  const std::vector<std::string> keys{"layers", "hidden", "heads", "sequence", "vocabulary"};
  for (const std::string& wrong : keys) {
    for (const std::string value : {"0", "-4", "1.5", "\"8\""}) {
      std::string text;
      for (const std::string& key : keys) {
        text += (text.empty() ? "{\"" : ", \"") + key + "\": " + (key == wrong ? value : "8");
      }
      INFO(text);
      CHECK_THAT(refusal(text + "}"), StartsWith("test.json: /" + wrong + ": "));
    }
    std::string text;
    for (const std::string& key : keys) {
      if (key != wrong) text += (text.empty() ? "{\"" : ", \"") + key + "\": 8";
    }
    CHECK_THAT(refusal(text + "}"), ContainsSubstring("\"" + wrong + "\""));
  }
}

}  // namespace stratagem::model::all_test
