// Models as data: what is printed of a model gives the same program, and what is wrong with a file
// is told where it stands.
#include <map>
#include <random>
#include <sstream>

#include "base/input_error.hpp"
#include "model/adapters.hpp"
#include "model/freeze.hpp"
#include "model/written/form.hpp"
#include "model/zoo/bert.hpp"
#include "model/zoo/evoformer.hpp"
#include "model/zoo/llama.hpp"
#include "model/zoo/swin.hpp"
#include "model/zoo/t5.hpp"
#include "model/zoo/vit.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::lowering::written_test {
namespace {

model::Graph reread(const std::string& text, std::int64_t batch) {
  const JsonReader file = JsonReader::from_text(text, "model.json");
  return model::graph_of(model::read_written(file), batch, model::DataType::fp16);
}

/// Graphs of a model by the samples of a micro-batch.
using OfBatch = std::function<model::Graph(std::int64_t batch)>;

model::Graph evoformer(int passes, std::int64_t batch) {
  model::EvoformerConfig c;
  c.layers = 4;
  c.msa_rows = 8;
  c.residues = 16;
  c.passes = passes;
  c.batch = batch;
  c.type = model::DataType::fp16;
  return model::evoformer(c);
}

const std::map<std::string, OfBatch>& models() {
  static const std::map<std::string, OfBatch> all = {
      {"gpt",
       [](std::int64_t batch) {
         model::GptConfig c = small_gpt;
         c.batch = batch;
         return model::gpt(c);
       }},
      {"experts",
       [](std::int64_t batch) {
         model::GptConfig c = small_gpt;
         c.batch = batch;
         c.experts = {.count = 4, .per_token = 2, .every = 2};
         return model::gpt(c);
       }},
      {"windows",
       [](std::int64_t batch) {
         model::LlamaConfig c{4, 48, 8, 4, 96, 20, 112, batch};
         c.type = model::DataType::fp16;
         c.variant.sight = {.window = 7, .full_every = 2, .sinks = true};
         return model::llama(c);
       }},
      {"latent",
       [](std::int64_t batch) {
         model::LlamaConfig c{4, 48, 8, 8, 96, 20, 112, batch};
         c.type = model::DataType::fp16;
         c.variant.head_width = 6;
         c.variant.latent = {.key_rank = 8, .query_rank = 12, .rotary = 2, .values = 4};
         c.experts = {.count = 4,
                      .per_token = 2,
                      .plain = 1,
                      .width = 12,
                      .shared = 1,
                      .router = model::Router::sigmoid,
                      .router_bias = true,
                      .weighing = model::Weighing::activation};
         return model::llama(c);
       }},
      {"values",
       [](std::int64_t batch) {
         model::LlamaConfig c{4, 48, 8, 4, 96, 20, 112, batch};
         c.type = model::DataType::fp16;
         c.variant.task.predicts = model::Predicts::values;
         return model::llama(c);
       }},
      {"cached",
       [](std::int64_t batch) {
         model::LlamaConfig c{4, 48, 8, 4, 96, 20, 112, batch};
         c.type = model::DataType::fp16;
         c.variant.task.cache = {.room = 30, .tokens = 9};
         return model::freeze(model::llama(c), [](const model::Tensor&) { return true; });
       }},
      {"bert",
       [](std::int64_t batch) {
         return model::bert({.layers = 4,
                             .hidden = 48,
                             .heads = 8,
                             .sequence = 20,
                             .vocabulary = 112,
                             .batch = batch});
       }},
      {"t5",
       [](std::int64_t batch) {
         model::T5Config c;
         c.layers = c.decoder_layers = 2;
         c.hidden = 48;
         c.heads = 8;
         c.intermediate = 96;
         c.sequence = 20;
         c.decoder_sequence = 12;
         c.vocabulary = 112;
         c.batch = batch;
         c.type = model::DataType::fp16;
         return model::t5(c);
       }},
      {"evoformer", [](std::int64_t batch) { return evoformer(1, batch); }},
      {"recycled", [](std::int64_t batch) { return evoformer(3, batch); }},
      {"vit",
       [](std::int64_t batch) {
         return model::vit({.layers = 4,
                            .hidden = 16,
                            .heads = 4,
                            .batch = batch,
                            .images = {.size = 12, .patch = 4, .classes = 6}});
       }},
      {"swin",
       [](std::int64_t batch) {
         return model::swin({.depths = {2, 3, 1},
                             .hidden = 8,
                             .heads = 4,
                             .batch = batch,
                             .images = {.size = 16, .patch = 2, .classes = 6},
                             .window = 2});
       }},
      {"adapters",
       [](std::int64_t batch) {
         model::GptConfig c = small_gpt;
         c.batch = batch;
         return model::with_adapters(model::gpt(c), 4, [](const model::Tensor& weight) {
           return weight.name.ends_with("qkv.weight");
         });
       }},
  };
  return all;
}

std::string text_of(const std::string& name) {
  const OfBatch& build = models().at(name);
  return model::written(build(1), build(2));
}

/// Lines of a text in an order of their own.
std::string sorted(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

/// The first lines that differ; "" if none does.
std::string difference(const std::string& one, const std::string& other) {
  std::istringstream left(one), right(other);
  std::string here, there;
  while (std::getline(left, here)) {
    if (!std::getline(right, there)) return "more: " + here;
    if (here != there) return here + " / " + there;
  }
  return std::getline(right, there) ? "less: " + there : "";
}

/// Strategies that a model can be divided by.
std::vector<std::string> strategies_of(const std::string& name) {
  if (name == "recycled") return {R"({"pipeline": 4, "schedule": "3f1b"})"};
  std::vector<std::string> all = {"{}", R"({"data": 2, "zero": 1})",
                                  R"({"pipeline": 2, "recompute": "full"})"};
  if (name != "evoformer") all.emplace_back(R"({"tensor": 2})");
  return all;
}

TEST_CASE("what is printed of a model gives the same program") {
  for (const auto& [name, build] : models()) {
    const std::string text = text_of(name);
    for (const std::string& strategy : strategies_of(name)) {
      INFO(name << " " << strategy);
      const model::Graph graph = build(4), again = reread(text, 4);
      CHECK(model::parameter_count(again) == model::parameter_count(graph));
      CHECK(model::step_flops(again) == model::step_flops(graph));
      CHECK(again.sample_tokens == graph.sample_tokens);
      std::string found = to_text(lowered(again, strategy, 4), again);
      std::string expected = to_text(lowered(graph, strategy, 4), graph);
      if (name == "adapters") {  // their parameters were made behind all others
        found = sorted(found);
        expected = sorted(expected);
      }
      const std::string differing = difference(found, expected);
      INFO(differing);
      CHECK(differing.empty());
    }
  }
}

TEST_CASE("equal layers are printed once, however many there are") {
  const auto layers = [](std::int64_t count) {
    const auto build = [&](std::int64_t batch) {
      model::GptConfig c = small_gpt;
      c.layers = count;
      c.batch = batch;
      return model::gpt(c);
    };
    return model::written(build(1), build(2));
  };
  const std::string few = layers(4), many = layers(40);
  CHECK(many.size() == few.size() + 2);  // 40 turns, and what the head reads of layers.39
  CHECK(model::parameter_count(reread(many, 1)) == model::parameter_count(model::gpt([] {
          model::GptConfig c = small_gpt;
          c.layers = 40;
          return c;
        }())));
}

TEST_CASE("GPT-J as data has its parameters, and one all-reduce a layer and pass") {
  // EleutherAI/gpt-j-6b on huggingface.co: 6,050,882,784, the bias of its head among them.
  const JsonReader file = JsonReader::from_file("scenarios/models/gpt-j-6b.json");
  const model::Graph graph = model::graph_of(model::read_written(file), 2, model::DataType::bf16);
  CHECK(model::parameter_count(graph) == 6'050'882'784);
  const program::Program program = lowered(graph, R"({"tensor": 4})");
  for (const placement::CellPass pass :
       {placement::CellPass::forward, placement::CellPass::backward})
    CHECK(collectives(block_of(program, 1, pass)).size() == 1);
}

std::string refused(const std::string& text) {
  try {
    reread(text, 2);
  } catch (const InputError& error) {
    return error.path + ": expected " + error.expected + ", found " + error.found;
  }
  return "";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("what is wrong with a model's file is told where it stands") {
  const std::string text = text_of("gpt");
  CHECK(refused(text).empty());
  CHECK_THAT(refused(with(text, "b s, vocabulary+ h -> b s h", "b s, vocabulary+ h - b s h")),
             StartsWith("/segments/0/operators/0/annotation: expected dimensions named with "));
  CHECK_THAT(refused(with(text, "b s, vocabulary+ h -> b s h", "b s, vocabulary h -> b s h x")),
             StartsWith("/segments/0/operators/0/annotation: expected an annotation that names "
                        "every dimension of embedding.word_rows, of which it has 3, found 4"));
  CHECK_THAT(refused(with(text, "[112,48]", "[112,50]")),
             StartsWith("/segments/0/operators/0/annotation: expected operands of which `h` has "
                        "one size, found 50 and 48"));
  CHECK_THAT(refused(with(text, "\"reads\":[\"tokens\"", "\"reads\":[\"token\"")),
             StartsWith("/segments/0/operators/0/reads/0: expected a tensor of the segment, or"));
  CHECK_THAT(
      refused(with(text, "\"kind\":\"embedding\"", "\"kind\":\"gelu\"")),
      StartsWith("/segments/0/operators/0/reads: expected as many tensors as gelu reads (1), "
                 "found 2"));
  CHECK_THAT(refused(with(text, "\"loss\": \"head.loss\"", "\"loss\": \"head.los\"")),
             StartsWith("/loss: expected an activation of the last segment in fp32, "
                        "segment.tensor, found head.los"));
}

TEST_CASE("operands that a kind would misread are refused where they stand") {
  const std::string text = text_of("gpt"), swin = text_of("swin");
  const auto wrong = [](const std::string& model, const std::string& from, const std::string& to) {
    return refused(with(model, from, to));
  };
  CHECK_THAT(wrong(text, "b s k+, n k+ -> b s n", "b s k, n k -> b s n"),
             ContainsSubstring("`k+`, since contraction sums over it"));
  CHECK_THAT(wrong(text, "b s k+, n k+ -> b s n", "b s k+, n+ k+ -> b s m"),
             ContainsSubstring("`m` in what contraction reads, too"));
  CHECK_THAT(wrong(text, "b s h^, h^, h^ -> b s h^, b s two^", "b s h, h, h -> b s h, b s two^"),
             ContainsSubstring("layer_norm needs it whole"));
  CHECK_THAT(wrong(text, R"("writes":["mlp.gelu.out"])", R"("writes":["mlp.fc1.out"])"),
             ContainsSubstring("a tensor that no other operator writes"));
  CHECK_THAT(wrong(text, R"({"name":"mlp.fc2","kind")", R"({"name":"mlp.fc1","kind")"),
             ContainsSubstring("a name that no operator of the segment before it has"));
  CHECK_THAT(wrong(text, R"("kind":"gelu")", R"("kind":"gelu","window":4)"),
             ContainsSubstring("/window: expected the kind fused_attention beside it"));
  CHECK_THAT(
      wrong(text, R"({"name":"tokens","shape":["batch",20])", R"({"name":"tokens","shape":[2,20])"),
      StartsWith("/segments/0/tensors/0/shape: expected a size of an input that grows"));
  CHECK_THAT(wrong(text, R"({"name":"words","shape":[112,48],"role":"parameter")",
                   R"({"name":"words","shape":[112,48],"role":"parameter","type":"int64")"),
             StartsWith("/segments/0/tensors/1/type: expected values or fp32"));
  CHECK_THAT(wrong(text, R"("loss": "head.loss")", R"("loss": "head.logits")"),
             StartsWith("/loss: expected an activation of the last segment in fp32"));
  CHECK_THAT(wrong(swin, R"("image_rows":8,"window_side":2)", R"("image_rows":8,"window_side":3)"),
             ContainsSubstring("/window_side: expected a divisor of image_rows, 8"));
  CHECK_THAT(wrong(swin, R"("image_rows":8,"window_side":2)", R"("image_rows":6,"window_side":2)"),
             ContainsSubstring("expected an image of 36 tokens"));
  CHECK_THAT(wrong(swin, R"(,"image_rows":8,"window_side":2)", ""),
             ContainsSubstring("expected the key image_rows"));
}

TEST_CASE("caches are keys and values of attention that has room for its tokens") {
  const std::string text = text_of("cached");
  const auto wrong = [&](const std::string& from, const std::string& to) {
    return refused(with(text, from, to));
  };
  CHECK_THAT(wrong(R"("cached":9)", R"("cached":11)"),
             ContainsSubstring("/cached: expected no more tokens than the cache has room for"));
  CHECK_THAT(wrong(R"({"name":"attention.core.keys","shape":["batch",30,4,6],"role":"cache")",
                   R"({"name":"attention.core.keys","shape":["batch",30,4,6],"role":"input")"),
             ContainsSubstring("/reads/1: expected a tensor of the role cache"));
  CHECK_THAT(wrong(R"({"name":"attention.core.keys","shape":["batch",30,4,6])",
                   R"({"name":"attention.core.keys","shape":[2,30,4,6])"),
             ContainsSubstring("a size of a cache that grows with the batch"));
  CHECK_THAT(wrong(R"({"name":"attention.core.out","shape":["batch",20,48])",
                   R"({"name":"attention.core.out","shape":["batch",20,48],"role":"cache")"),
             ContainsSubstring("expected"));
  CHECK_THAT(refused(with(text_of("gpt"), R"("kind":"gelu")", R"("kind":"gelu","cached":4)")),
             ContainsSubstring("/cached: expected the kind cached_attention beside it"));
}

TEST_CASE("every key of a model's file acts") {
  const std::string gpt = text_of("gpt"), windows = text_of("windows"),
                    recycled = text_of("recycled");
  const auto program = [](const std::string& text) {
    const model::Graph graph = reread(text, 2);
    return to_text(lowered(graph, R"({"tensor": 2})"), graph);
  };
  const auto acts = [&](const std::string& from, const std::string& to) {
    INFO(from << " becomes " << to);
    CHECK(program(with(gpt, from, to)) != program(gpt));
  };
  acts(R"("kind":"gelu")", R"("kind":"relu")");
  acts("b s n -> b s n", "b s n^ -> b s n^");
  const std::string positions = R"({"name":"positions","shape":[20,48],"role":"parameter")";
  acts(positions, positions + R"(,"frozen":true)");
  const std::string sum = R"("loss.sum","shape":["batch",20],"role":"statistic")";
  acts(sum + R"(,"type":"fp32")", sum);
  CHECK(program(with(with(gpt, R"("repeat": 4)", R"("repeat": 4, "first": 1)"), "layers.3.",
                     "layers.4.")) != program(gpt));
  const auto flops = [](const std::string& text) { return model::step_flops(reread(text, 2)); };
  const std::string normed = R"({"name":"input_norm.out","shape":["batch",20,48])";
  CHECK(flops(with(gpt, normed, normed + R"(,"filled":0.5)")) < flops(gpt));
  CHECK(flops(with(windows, R"("window":7)", R"("window":5)")) < flops(windows));
  CHECK(flops(with(recycled, R"("passes": 3)", R"("passes": 2)")) < flops(recycled));
  CHECK(reread(with(gpt, R"("tokens": 20)", R"("tokens": 40)"), 2).sample_tokens == 40);
}

TEST_CASE("graphs that plans cannot divide are refused where they stand") {
  const std::string text = text_of("gpt");
  // Layer 1 reads what the embedding left, beside what layer 0 does.
  CHECK_THAT(refused(with(text, R"("reads":["mlp.dropout.out","attention.residual.out"])",
                          R"("reads":["mlp.dropout.out","embedding.dropout.out"])")),
             ContainsSubstring("a tensor that no other segment reads but its own"));
}

/// Numbers, words and operands of a model's file, one of them changed.
std::string spoiled(const std::string& text, std::mt19937& random) {
  std::vector<std::pair<std::size_t, std::size_t>> words;  // first and length, of values in quotes
  for (std::size_t at = text.find('"'); at != std::string::npos;) {
    const std::size_t end = text.find('"', at + 1);
    words.emplace_back(at, end + 1 - at);
    at = text.find('"', end + 1);
  }
  const auto any = [&](std::size_t count) { return random() % count; };
  std::string result = text;
  const auto [at, length] = words[any(words.size())];
  if (random() % 3 > 0) {
    const auto [from, more] = words[any(words.size())];
    return result.replace(at, length, text.substr(from, more));
  }
  std::vector<std::size_t> digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) != 0) digits.push_back(i);
  }
  result[digits[any(digits.size())]] = static_cast<char>('1' + random() % 9);
  return result;
}

TEST_CASE("a spoiled model's file is refused as input, or runs") {
  std::mt19937 random(20261128);
  int refusals = 0, runs = 0;
  for (const char* name : {"gpt", "experts", "windows", "swin", "bert"}) {
    const std::string text = text_of(name);
    for (int i = 0; i < 300; i += stride(10)) {
      const std::string wrong = spoiled(text, random);
      INFO(name << " " << i);
      try {
        const model::Graph graph = reread(wrong, 2);
        (void)lowered(graph, i % 2 == 0 ? "{}" : R"({"tensor": 2, "recompute": "selective"})", 2);
        ++runs;
      } catch (const InputError&) {
        ++refusals;
      } catch (const BrokenPromise& promise) {
        FAIL_CHECK(promise.what() << "\n" << wrong);
      }
    }
  }
  CHECK(refusals > (sanitized ? 50 : 500));
  CHECK(runs > (sanitized ? 5 : 50));
}

}  // namespace
}  // namespace stratagem::lowering::written_test
