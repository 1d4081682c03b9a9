// Bytes of activations that a forward pass keeps, against Korthikanti et al., arXiv:2205.05198.
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::activation_memory_test {

using placement::CellPass;
using program::Block;
using program::Category;
using program::Program;

namespace {

/// s*b*h * (10 + 24/t + 5as/(ht)) bytes per layer (equation 2; t = 1 gives equation 1, sbh(34 +
/// 5as/h)).
double published_bytes(const model::GptConfig& c, double t) {
  const auto s = static_cast<double>(c.sequence);
  const auto b = static_cast<double>(c.batch);
  const auto h = static_cast<double>(c.hidden);
  const auto a = static_cast<double>(c.heads);
  return s * b * h * (10 + 24 / t + 5 * a * s / (h * t));
}

/// What layer 0 leaves alive: the next layer's input stands for its own, which the embeddings left.
Bytes left_by_layer(const model::GptConfig& config, const std::string& strategy,
                    Category category) {
  const model::Graph graph = model::gpt(config);
  return left_by(block_of(lowered(graph, strategy), 1, CellPass::forward), category);
}

/// The tasks of a block that free buffers of its attention scores.
std::vector<std::string> ends_of_scores(const Block& block) {
  std::vector<std::string> ends;
  for (const program::Task& task : block.tasks) {
    for (const int slot : task.frees) {
      if (block.slots[slot].name.find("attention.scores") != std::string::npos)
        ends.push_back(task.name);
    }
  }
  return ends;
}

constexpr model::GptConfig gpt3{
    .layers = 2, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 51200, .batch = 1};

}  // namespace

TEST_CASE("a layer of GPT-3 175B keeps the published bytes") {
  // 2.67 GiB unsplit, 0.54 GiB with 8-way tensor parallelism, 48 MiB when recomputed.
  CHECK(left_by_layer(gpt3, "{}", Category::activations) == Bytes{2'868'903'936});
  CHECK(left_by_layer(gpt3, R"({"tensor": 8})", Category::activations) == Bytes{578'813'952});
  CHECK(left_by_layer(gpt3, R"({"recompute": "full"})", Category::checkpoints) ==
        Bytes{50'331'648});
  CHECK(left_by_layer(gpt3, R"({"recompute": "full", "tensor": 8})", Category::checkpoints) ==
        Bytes{50'331'648});
}

TEST_CASE("a layer keeps sbh(34 + 5as/h) bytes, and sbh(10 + 24/t + 5as/ht) on t tensor ranks") {
  std::vector<model::GptConfig> shapes = {small_gpt, gpt3};
  // Megatron-LM's models of 2019 at a micro-batch of 8, and 530B of the paper's table 3 at 1.
  for (const auto& [hidden, heads] : std::vector<std::pair<int, int>>{
           {1536, 16}, {1920, 20}, {2304, 24}, {3072, 32}, {3072, 16}, {3072, 24}}) {
    shapes.push_back({.layers = 2,
                      .hidden = hidden,
                      .heads = heads,
                      .sequence = 1024,
                      .vocabulary = 51200,
                      .batch = 8});
  }
  shapes.push_back({.layers = 2,
                    .hidden = 20480,
                    .heads = 128,
                    .sequence = 2048,
                    .vocabulary = 51200,
                    .batch = 1});
  for (const model::GptConfig& shape : shapes) {
    for (const int t : {1, 2, 4, 8}) {
      if (shape.heads % t != 0) continue;
      INFO("hidden " << shape.hidden << ", heads " << shape.heads << ", tensor " << t);
      const Bytes kept =
          left_by_layer(shape, "{\"tensor\": " + std::to_string(t) + "}", Category::activations);
      CHECK(close(kept, Bytes{published_bytes(shape, t)}, 1e-14));
    }
  }
}

TEST_CASE("data-parallel ranks keep activations of their share of the batch") {
  CHECK(left_by_layer(small_gpt, R"({"data": 3})", Category::activations) ==
        left_by_layer(small_gpt, "{}", Category::activations) / 3);
}

TEST_CASE("statistics of a layer's two norms are counted apart: two fp32 numbers per token") {
  const auto tokens = static_cast<double>(small_gpt.sequence * small_gpt.batch);
  CHECK(left_by_layer(small_gpt, "{}", Category::statistics) == tokens * 2 * 2 * 4_B);
  CHECK(left_by_layer(small_gpt, R"({"tensor": 4})", Category::statistics) == tokens * 2 * 2 * 4_B);
  CHECK(left_by_layer(small_gpt, R"({"recompute": "full"})", Category::statistics) == 0_B);
}

TEST_CASE("full recomputation keeps 2sbh bytes per layer and nothing else") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "full"})");
  const double sbh = 20.0 * 12 * 48;
  for (int segment = 0; segment <= 4; ++segment) {
    INFO(segment);
    const Block& block = block_of(program, segment, CellPass::forward);
    // The last layer's output is the head's input, which is not recomputed.
    CHECK(left_by(block, Category::checkpoints) == (segment < 4 ? 2 * sbh : 0) * 1_B);
    // Of the dropout after the embeddings, one byte each.
    const double mask = segment == 0 ? sbh : 0;
    CHECK(left_by(block, Category::activations) == (segment < 4 ? mask : 2 * sbh) * 1_B);
    CHECK(left_by(block, Category::temporaries) == 0_B);
  }
}

TEST_CASE("selective recomputation keeps sbh(10 + 24/t) bytes per layer") {
  // Korthikanti et al., section 5 and table 2: 5as^2b/t less. Queries, keys and values, 6sbh/t, are
  // the inputs of what runs again. GPT-3 175B with t = 8: 12288 * 2048 * 13 = 327155712.
  const auto kept = [](const model::GptConfig& shape, const std::string& options,
                       Category category) {
    return left_by_layer(shape, R"({"recompute": "selective")" + options + "}", category);
  };
  for (const model::GptConfig& shape : {small_gpt, gpt3}) {
    const double sbh = static_cast<double>(shape.sequence * shape.batch * shape.hidden);
    for (const int t : {1, 2, 4, 8}) {
      INFO("hidden " << shape.hidden << ", tensor " << t);
      const std::string tensor = ", \"tensor\": " + std::to_string(t);
      CHECK(kept(shape, tensor, Category::checkpoints) == Bytes{sbh * 6 / t});
      CHECK(kept(shape, tensor, Category::activations) == Bytes{sbh * (10 + 18.0 / t)});
      CHECK(kept(shape, tensor, Category::statistics) ==
            left_by_layer(shape, "{}", Category::statistics));
    }
  }
  CHECK(kept(gpt3, R"(, "tensor": 8)", Category::activations) +
            kept(gpt3, R"(, "tensor": 8)", Category::checkpoints) ==
        Bytes{327'155'712});
}

TEST_CASE("when the forward pass ends, the whole model keeps what its parts keep") {
  // Embeddings: a dropout mask, sbh, and layer 0's input, 2sbh. Layers: as published, of which each
  // one's input is its predecessor's output. Head: the norm's output 2sbh and the exponentials of
  // all logits in fp32, 4sbV, which tensor ranks share.
  const model::Graph graph = model::gpt(small_gpt);
  const double sbh = 20.0 * 12 * 48;
  for (const int t : {1, 2, 8}) {
    INFO("tensor " << t);
    const Program program = lowered(graph, "{\"tensor\": " + std::to_string(t) + "}");
    Bytes kept;
    for (int segment = 0; segment <= 5; ++segment) {
      kept += left_by(block_of(program, segment, CellPass::forward), Category::activations);
    }
    const double logits = 20.0 * 12 * 112;
    const double expected =
        sbh + 2 * sbh + 4 * published_bytes(small_gpt, t) + 2 * sbh + 4 * logits / t;
    CHECK(close(kept, Bytes{expected}, 1e-14));
  }
}

TEST_CASE("without dropout a layer keeps sbh(32 + 2as/h): no masks, probabilities once") {
  // Of 34 + 5as/h the two masks of a byte go, and of the core the mask and the copy that dropout
  // returns: probabilities are what their own gradient and the product with the values both read.
  // ReLU keeps its output, which fc2 reads anyway: 8sbh less. An MLP of width f keeps 4f in place
  // of 16h. Fused attention keeps its result, which the projection reads, and no probabilities.
  for (model::GptConfig c : {small_gpt, gpt3}) {
    const double sb = static_cast<double>(c.sequence * c.batch);
    const auto h = static_cast<double>(c.hidden);
    const double probabilities = 2.0 * static_cast<double>(c.heads * c.sequence);
    c.dropout = false;
    const auto kept = [&] { return left_by_layer(c, "{}", Category::activations); };
    CHECK(kept() == Bytes{sb * (32 * h + probabilities)});
    c.activation = model::OpKind::relu;
    CHECK(kept() == Bytes{sb * (24 * h + probabilities)});
    c.activation = model::OpKind::gelu;
    c.intermediate = 3 * c.hidden;
    CHECK(kept() == Bytes{sb * (28 * h + probabilities)});
    c.fused_attention = true;
    CHECK(kept() == Bytes{sb * 28 * h});
  }
}

TEST_CASE("scores that variables of a framework name live until the heads are merged") {
  const model::Graph graph = model::gpt(small_gpt);
  cost::Stack holds = plain_stack();
  holds.rules = {cost::HeldInputs{.of = "masked_softmax", .until = "merge_heads"}};
  for (const auto& [strategy, parts] : std::vector<std::pair<std::string, std::size_t>>{
           {"{}", 1}, {R"({"tensor": 2, "recompute": "full"})", 1}, {R"({"coshard": 2})", 2}}) {
    INFO(strategy);
    const strategies::Plan plan = plan_of(graph, strategy);
    const auto ends = [&](const cost::Stack& stack) {
      return ends_of_scores(block_of(lower(plan, stack), 1, CellPass::forward));
    };
    const std::vector<std::string> before = ends(plain_stack()), after = ends(holds);
    CHECK(before.size() == parts);
    CHECK(after.size() == parts);
    for (const std::string& task : before) CHECK(task.find("attention.softmax") == 0);
    for (const std::string& task : after) CHECK(task.find("attention.merge_heads") == 0);
  }
}

TEST_CASE("of a fused kernel's operands those of the operator that is named are held") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto freed_at_gelu = [&](bool held) {
    cost::Stack stack = plain_stack();
    stack.rules = {cost::Fusion{{"bias_add", "dropout", "add"}}};
    if (held) stack.rules.push_back(cost::HeldInputs{.of = "dropout", .until = "gelu"});
    const Program program = lower(plan_of(graph, R"({"recompute": "full"})"), stack);
    const Block& block = block_of(program, 1, CellPass::forward);
    const auto gelu = std::ranges::find(block.tasks, "mlp.gelu", &program::Task::name);
    REQUIRE(gelu != block.tasks.end());
    return gelu->frees.size();
  };
  // The dropout reads what the bias was added to; bias and residual are read by its neighbours.
  CHECK(freed_at_gelu(true) == freed_at_gelu(false) + 1);
}

}  // namespace stratagem::lowering::activation_memory_test
