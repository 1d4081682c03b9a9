// What kernels are asked to compute and move, by hand for small shapes, and what all of a program
// compute, by published formulas.
#include "cost/kernel_time.hpp"
#include "model/zoo/bert.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::lowering::kernels_test {

using placement::CellPass;
using program::Block;
using program::Program;
using program::Task;

namespace {

constexpr double b = 3, s = 20, h = 48, heads = 8, layers = 2, f = 112, v = 56;
constexpr double kv = 24;  // width of keys and values: 4 heads of 6
constexpr model::LlamaConfig few_keys{.layers = 2,
                                      .hidden = 48,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .intermediate = 112,
                                      .sequence = 20,
                                      .vocabulary = 56,
                                      .batch = 3};

struct Asked {
  Flops flops;
  Bytes traffic;
  int launches = 0;
};

/// Of all kernels of a block whose tasks' names begin like this.
Asked asked(const Block& block, const std::string& name) {
  Asked sum;
  for (const Task& task : block.tasks) {
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel == nullptr || !task.name.starts_with(name)) continue;
    sum.flops += kernel->flops;
    sum.traffic += kernel->traffic;
    sum.launches += kernel->launches;
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "a fused attention computes two products forward and five backward, of half of all pairs") {
  // A product of s x s scores takes 2bs^2h FLOPs; a causal mask leaves half of the pairs. Forward:
  // scores and their product with the values. Backward: scores again, gradients of probabilities,
  // queries, keys and values. Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.1.
  const Program program = lowered(model::llama(few_keys), "{}");
  const Asked forward = asked(block_of(program, 1, CellPass::forward), "attention.core");
  const Asked backward = asked(block_of(program, 1, CellPass::backward), "attention.core");
  CHECK(forward.flops == Flops{2 * 2 * b * s * s * h / 2});
  CHECK(close(backward.flops, 2.5 * forward.flops, 1e-12));
  // Each operand is read or written once: bf16, and one fp32 sum for every token and head.
  const double queries = 2 * b * s * h, keys = 2 * b * s * kv, sums = 4 * b * s * heads;
  CHECK(forward.traffic == Bytes{queries + 2 * keys + queries + sums});
  CHECK(close(backward.traffic,
              Bytes{(queries + queries + 2 * keys + queries + sums) + (queries + 2 * keys)},
              1e-12));
  CHECK(forward.launches == 1);
}

TEST_CASE("values have a width of their own, and a window hides pairs, forward and backward") {
  // Products forward: scores, of the keys' width, and their sum of values, of the values'.
  // Backward: scores again and gradients of queries and keys; of probabilities and values.
  model::LlamaConfig config = few_keys;
  config.kv_heads = 8;
  config.variant.head_width = 10;
  config.variant.latent = {.key_rank = 12, .query_rank = 16, .rotary = 4, .values = 6};
  constexpr double key = 14, value = 6, window = 7;
  const auto check = [&](double pairs, const std::string& strategy) {
    const Program program = lowered(model::llama(config), strategy);
    const Block& forward = block_of(program, 1, CellPass::forward);
    const Block& backward = block_of(program, 1, CellPass::backward);
    CHECK(close(asked(forward, "attention.core").flops, Flops{2 * pairs * (key + value)}, 1e-12));
    CHECK(close(asked(backward, "attention.core").flops, Flops{2 * pairs * (3 * key + 2 * value)},
                1e-12));
    for (const Block* block : {&forward, &backward}) {
      for (const Task& task : block->tasks) {
        if (!task.name.starts_with("attention.core")) continue;
        if (const auto* kernel = std::get_if<cost::Kernel>(&task.work))
          CHECK(kernel->seen.window == config.variant.sight.window);
      }
    }
  };
  check(b * heads * s * s / 2, "{}");
  check(b * heads * s * s / 2 / 2, R"({"context": 2})");
  config.variant.sight.window = window;
  check(b * heads * window * (s - (window - 1) / 2), "{}");
  check(b * heads * window * (s - (window - 1) / 2) / 2, R"({"context": 2})");
}

TEST_CASE("documents packed into a sample are as many samples of their length") {
  // The same tokens, as one sample of 20 or as 4 of 5.
  model::LlamaConfig packed = few_keys, apart = few_keys;
  apart.sequence = few_keys.sequence / 4;
  apart.batch = few_keys.batch * 4;
  const auto core = [](const model::LlamaConfig& config, CellPass pass) {
    const Program program = lowered(model::llama(config), "{}");
    std::vector<std::pair<Flops, double>> all;
    for (const Task& task : block_of(program, 1, pass).tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel == nullptr || !task.name.starts_with("attention.core")) continue;
      const cost::AttentionShape shape = cost::attention_shape(*kernel);
      CHECK(shape.heads * shape.queries == b * heads * s);
      all.emplace_back(kernel->flops, cost::attention_share({{0.5}, {100}, {200}}, shape, 8));
    }
    return all;
  };
  for (const model::Documents& documents :
       {model::Documents{.count = 4}, {.lengths = {5, 5, 5, 5}}}) {
    packed.variant.sight.documents = documents;
    for (const CellPass pass : {CellPass::forward, CellPass::backward})
      CHECK(core(packed, pass) == core(apart, pass));
  }
  const auto forward = [&](const model::LlamaConfig& config, const char* strategy) {
    const Program program = lowered(model::llama(config), strategy);
    return asked(block_of(program, 1, CellPass::forward), "attention.core").flops;
  };
  CHECK(close(forward(packed, R"({"context": 2})"), forward(packed, "{}") / 2, 1e-12));
  // Half of the pairs within each document; with a window those of the longer one are fewer.
  packed.variant.sight.documents = {.lengths = {12, 8}};
  constexpr double width = h / heads;
  CHECK(close(forward(packed, "{}"), Flops{4 * b * heads * width * (12 * 12 + 8 * 8) / 2}, 1e-12));
  packed.variant.sight.window = 10;
  CHECK(close(forward(packed, "{}"),
              Flops{4 * b * heads * width * ((2 * 12 * 10 - 10 * 9) + 8 * 8) / 2}, 1e-12));
  // Of a model's FLOPs all pairs of a document count.
  const model::Graph graph = model::llama(packed);
  const auto core_of =
      std::ranges::find(graph.operators, "layers.0.attention.core", &model::Operator::name);
  REQUIRE(core_of != graph.operators.end());
  CHECK(model::flops(graph, *core_of) == Flops{4 * b * heads * width * (12 * 10 + 8 * 8)});
}

TEST_CASE("layers that see all tokens have blocks of their own beside those with a window") {
  model::LlamaConfig config = few_keys;
  config.layers = 4;
  config.kv_heads = 8;
  config.variant.sight = {.window = 7, .full_every = 3};
  const Program program = lowered(model::llama(config), "{}");
  for (const int layer : {1, 2, 3, 4}) {
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      const Block& block = block_of(program, layer, pass);
      CHECK(std::ranges::count_if(block.tasks, [&](const Task& task) {
              const auto* kernel = std::get_if<cost::Kernel>(&task.work);
              return kernel != nullptr && task.name.starts_with("attention.core") &&
                     kernel->seen.window == (layer == 3 ? 0 : 7);
            }) == (pass == CellPass::forward ? 1 : 3));
    }
  }
}

TEST_CASE("the rule for an operator's name, or for tensors of experts, goes before its kind's") {
  model::LlamaConfig config = few_keys;
  config.experts = {.count = 6, .per_token = 2};
  const model::Graph graph = model::llama(config);
  const auto launches = [&](std::vector<cost::Rule> rules, const std::string& name) {
    cost::Stack stack = plain_stack();
    stack.rules = std::move(rules);
    const Program program = lower(plan_of(graph, R"({"data": 3, "expert": 3})"), stack);
    return asked(block_of(program, 1, CellPass::forward), name).launches;
  };
  using Kernels = cost::OperatorKernels;
  const std::vector<cost::Rule> rules = {
      Kernels{.of = "rotary", .launches = 3}, Kernels{.of = "swiglu", .launches = 4},
      Kernels{.of = "rotary", .named = "*_q", .launches = 5},
      Kernels{.of = "rotary", .each_expert = true, .launches = 6},
      Kernels{.of = "swiglu", .each_expert = true, .launches = 7}};
  CHECK(launches(rules, "attention.rotary_q") == 5);
  CHECK(launches(rules, "attention.rotary_k") == 3);  // on no tensor of experts
  CHECK(launches(rules, "mlp.swiglu") == 7 * 2);      // two of six experts are here
  // A router's softmax is over experts, not on a tensor of experts.
  CHECK(launches({Kernels{.of = "softmax", .each_expert = true, .launches = 9}},
                 "mlp.router.softmax") == 1);
  const Kernels named{.of = "swiglu", .named = "mlp.*", .each_expert = true, .launches = 8};
  CHECK(launches({named}, "mlp.swiglu") == 8 * 2);
  // A gradient goes by the name of its operator.
  cost::Stack stack = plain_stack();
  stack.rules = {Kernels{.of = "swiglu.B", .named = "mlp.swiglu", .launches = 9}};
  const Program program = lower(plan_of(graph, "{}"), stack);
  CHECK(asked(block_of(program, 1, CellPass::backward), "mlp.swiglu").launches == 9);
}

TEST_CASE("products of experts are one launch, or one for each expert that is here") {
  model::LlamaConfig config = few_keys;
  config.experts = {.count = 6, .per_token = 2};
  const model::Graph graph = model::llama(config);
  cost::Stack one_by_one = plain_stack();
  one_by_one.rules = {cost::GroupedProducts::one_by_one};
  const auto launches = [&](const std::string& strategy, const cost::Stack& stack, CellPass pass,
                            const std::string& name) {
    return asked(block_of(lower(plan_of(graph, strategy), stack), 1, pass), name).launches;
  };
  const std::string experts = "mlp.gate_up", divided = R"({"data": 3, "expert": 3})";
  CHECK(launches("{}", plain_stack(), CellPass::forward, experts) == 1);
  CHECK(launches("{}", one_by_one, CellPass::forward, experts) == 6);
  // Two products backward: five launches more of either.
  CHECK(launches("{}", one_by_one, CellPass::backward, experts) ==
        launches("{}", plain_stack(), CellPass::backward, experts) + 2 * 5);
  CHECK(launches(divided, one_by_one, CellPass::forward, experts) == 2);
  CHECK(launches("{}", one_by_one, CellPass::forward, "attention.qkv") == 1);
  const Program looped = lower(plan_of(graph, "{}"), one_by_one);
  for (const Task& task : block_of(looped, 1, CellPass::forward).tasks) {
    if (!task.name.starts_with(experts)) continue;
    CHECK(std::get<cost::Kernel>(task.work).by == cost::LaunchedBy::loop);
  }
  const auto flops = [&](const cost::Stack& stack) {
    return hardware_flops(lower(plan_of(graph, "{}"), stack));
  };
  CHECK(flops(one_by_one) == flops(plain_stack()));
}

TEST_CASE("a CUDA graph of operators that the model lacks is refused, and one ends at a wait") {
  cost::Stack stack = plain_stack();
  stack.rules = {cost::CudaGraph{{"layers.*.attention.*"}}};
  const model::Graph graph = model::llama(few_keys);
  CHECK_THROWS_AS(lower(plan_of(graph, "{}"), stack), InputError);
  stack.rules = {cost::CudaGraph{{"*"}},
                 cost::OperatorKernels{.of = "swiglu", .synchronizations = 1}};
  const Program program = lower(plan_of(graph, "{}"), stack);
  int graphs = 0;
  for (const Task& task : block_of(program, 1, CellPass::forward).tasks) {
    const cost::LaunchedBy by = std::get<cost::Kernel>(task.work).by;
    graphs += by == cost::LaunchedBy::graph ? 1 : 0;
    CHECK((by == cost::LaunchedBy::framework) == (task.name == "mlp.swiglu"));
  }
  CHECK(graphs == 2);
}

TEST_CASE("of neighbours in a CUDA graph the host launches the first") {
  cost::Stack stack = plain_stack();
  stack.rules = {cost::CudaGraph{{"attention.*", "mlp_norm"}}};
  const model::Graph graph = model::llama(few_keys);
  const Program program = lower(plan_of(graph, "{}"), stack);
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    bool before = false;
    int captured = 0, graphs = 0;
    for (const Task& task : block_of(program, 1, pass).tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel == nullptr) continue;
      const bool in = task.name.starts_with("attention.") || task.name.starts_with("mlp_norm");
      CAPTURE(task.name);
      CHECK((kernel->by == cost::LaunchedBy::graph) == (in && !before));
      CHECK((kernel->by == cost::LaunchedBy::replay) == (in && before));
      graphs += in && !before ? 1 : 0;
      captured += kernel->by == cost::LaunchedBy::replay ? 1 : 0;
      before = in;
    }
    CHECK(graphs == 1);
    CHECK(captured > 5);
  }
}

TEST_CASE("joined heads and sinks move what they read and write, once") {
  model::LlamaConfig config = few_keys;
  config.kv_heads = 8;
  config.variant.head_width = 10;
  config.variant.latent = {.key_rank = 12, .query_rank = 16, .rotary = 4, .values = 6};
  config.variant.sight.sinks = true;
  const Program program = lowered(model::llama(config), "{}");
  const Block& forward = block_of(program, 1, CellPass::forward);
  const Block& backward = block_of(program, 1, CellPass::backward);
  // bf16. Keys share what is turned, queries do not.
  const double plain = 2 * b * s * heads * 10, turned = 2 * b * s * heads * 4,
               shared = 2 * b * s * 4;
  CHECK(asked(forward, "attention.up.join_q").traffic == Bytes{2 * (plain + turned)});
  CHECK(asked(forward, "attention.up.join_k").traffic == Bytes{plain + shared + plain + turned});
  CHECK(asked(backward, "attention.up.join_q").traffic == Bytes{2 * (plain + turned)});
  CHECK(asked(backward, "attention.up.join_k").traffic == Bytes{2 * plain + turned + shared});
  // The gradient of sinks reads the result, what comes back for it, log sums in fp32 and the sinks.
  const double result = 2 * b * s * heads * 6, sums = 4 * b * s * heads;
  Bytes of_sinks;
  for (const Task& task : backward.tasks) {
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel != nullptr && kernel->kind == cost::KernelKind::reduction &&
        task.name.starts_with("attention.core"))
      of_sinks += kernel->traffic;
  }
  CHECK(of_sinks == Bytes{2 * result + sums + 2 * 2 * heads});
}

TEST_CASE("a fused attention to all tokens computes all pairs, and is told from a causal one") {
  const model::Graph graph = model::bert({.layers = 2,
                                          .hidden = 48,
                                          .heads = 8,
                                          .sequence = 20,
                                          .vocabulary = 56,
                                          .batch = 3,
                                          .fused_attention = true});
  const Program program = lowered(graph, "{}");
  const Flops forward{2 * 2 * b * s * s * h};
  CHECK(asked(block_of(program, 1, CellPass::forward), "attention.core").flops == forward);
  CHECK(close(asked(block_of(program, 1, CellPass::backward), "attention.core").flops,
              2.5 * forward, 1e-12));
  int seen = 0;
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    for (const Task& task : block_of(program, 1, pass).tasks) {
      if (!task.name.starts_with("attention.core")) continue;
      CHECK(std::get<cost::Kernel>(task.work).seen.all);
      ++seen;
    }
  }
  CHECK(seen == 1 + 3);
  // Of all tokens a pooler reads the first, and writes as much: 16 bits each.
  const Asked first = asked(block_of(program, 3, CellPass::forward), "pooler.first");
  CHECK(first.traffic == Bytes{2 * 2 * b * h});
}

TEST_CASE(
    "fused operators are one kernel, and what passes between them is neither written nor read") {
  // The bias's output is b x s x 4h numbers of 16 bits.
  const model::Graph graph = model::gpt(small_gpt);
  const auto asked_of_mlp = [&](const std::vector<std::string>& fused) {
    cost::Stack stack = plain_stack();
    if (!fused.empty()) stack.rules = {cost::Fusion{fused}};
    const Program program = lower(plan_of(graph, "{}"), stack);
    return asked(block_of(program, 1, CellPass::forward), "mlp.");
  };
  const Asked apart = asked_of_mlp({}), fused = asked_of_mlp({"bias_add", "gelu"});
  const double passed = 2.0 * small_gpt.batch * small_gpt.sequence * 4 * small_gpt.hidden;
  CHECK(apart.launches == fused.launches + 1);
  CHECK(close(apart.traffic, fused.traffic + Bytes{2 * passed}, 1e-12));
  // What others read in between fuses nothing.
  CHECK(asked_of_mlp({"gelu", "bias_add"}).launches == apart.launches);
}

TEST_CASE("hardware FLOPs are those that run: of half of all pairs where attention is fused") {
  // Forward 2bs FLOPs for each weight of a matrix, and 4bs^2h for attention of all pairs; backward
  // twice that. Fused: (2 + 5) / 2 products in place of 6.
  const double layer = 2 * b * s * (2 * h * h + 2 * h * kv + 3 * h * f);
  const double head = 2 * b * s * v * h;
  const double product = 2 * b * s * s * h;
  model::LlamaConfig config = few_keys;
  const Flops matrices{3 * (layers * layer + head)};
  for (const bool fused : {true, false}) {
    config.fused.attention = fused;
    const model::Graph graph = model::llama(config);
    const double products = fused ? 3.5 : 6;
    for (const std::string strategy :
         {"{}", R"({"tensor": 4})", R"({"context": 4})", R"({"data": 3})", R"({"pipeline": 2})",
          R"({"context": 2, "tensor": 2, "sequence_parallel": true})"}) {
      INFO(strategy << (fused ? " fused" : ""));
      CHECK(close(hardware_flops(lowered(graph, strategy)),
                  matrices + Flops{layers * products * product}, 1e-12));
    }
    const double again = fused ? 1 : 2;
    CHECK(close(hardware_flops(lowered(graph, R"({"recompute": "full"})")),
                matrices + Flops{layers * (layer + (products + again) * product)}, 1e-12));
    CHECK(close(hardware_flops(lowered(graph, R"({"recompute": "selective"})")),
                matrices + Flops{layers * (products + again) * product}, 1e-12));
    // The model's work is of all pairs either way, as formulas have it.
    CHECK(close(model::step_flops(graph), matrices + Flops{layers * 6 * product}, 1e-12));
  }
}

TEST_CASE("batches of products whose rows are no multiples of 16 bytes run as fp32 does") {
  // Rows of 16 bytes hold 8 values of fp16. Products of heads are batches: their operands have rows
  // of a head's width (8, 15, 30), or of a value for each token. All others are single products,
  // whose rows of 60 values, or of 59 logits, are no multiples, either.
  cost::Stack in_fp32 = plain_stack();
  in_fp32.rules.emplace_back(cost::UnalignedBatches::in_fp32);
  const std::vector<std::tuple<int, int, bool>> cases = {
      {5, 24, true}, {4, 24, false}, {2, 24, false}, {5, 20, false}};
  for (const auto& [heads, sequence, aligned] : cases) {
    const model::GptConfig gpt{.layers = 1,
                               .hidden = heads == 5 ? 40 : 60,
                               .heads = heads,
                               .sequence = sequence,
                               .vocabulary = 59,
                               .batch = 1,
                               .dropout = false};
    int of_heads = 0;
    for (const bool rule : {false, true}) {
      const Program program =
          lower(plan_of(model::gpt(gpt), "{}", 1), rule ? in_fp32 : plain_stack(), {});
      for (const Block& block : program.blocks) {
        for (const Task& task : block.tasks) {
          const auto* kernel = std::get_if<cost::Kernel>(&task.work);
          if (kernel == nullptr || kernel->kind != cost::KernelKind::gemm) continue;
          const bool as_fp32 = kernel->type == model::DataType::fp32;
          CHECK(as_fp32 == (rule && !aligned && kernel->batch > 1));
          of_heads += kernel->batch > 1 ? 1 : 0;
        }
      }
    }
    CHECK(of_heads == 2 * 6);  // scores and values, forward and two gradients each
  }
}

TEST_CASE("products know at which multiples their rows begin, if not of 16 bytes") {
  // Rows of 59 logits begin at multiples of 2 bytes, of 60 values at multiples of 8.
  const model::GptConfig gpt{.layers = 1,
                             .hidden = 60,
                             .heads = 1,
                             .sequence = 24,
                             .vocabulary = 59,
                             .batch = 1,
                             .dropout = false};
  const Program program = lower(plan_of(model::gpt(gpt), "{}", 1), plain_stack(), {});
  const auto alignment = [&](int segment, const std::string& name) {
    const Block& block = block_of(program, segment, CellPass::forward);
    const auto task = std::ranges::find(block.tasks, name, &Task::name);
    REQUIRE(task != block.tasks.end());
    return std::get<cost::Kernel>(task->work).alignment;
  };
  CHECK(alignment(2, "logits") == 2);
  CHECK(alignment(1, "mlp.fc1") == 8);
  const model::GptConfig even{.layers = 1,
                              .hidden = 64,
                              .heads = 1,
                              .sequence = 24,
                              .vocabulary = 64,
                              .batch = 1,
                              .dropout = false};
  const Program aligned = lower(plan_of(model::gpt(even), "{}", 1), plain_stack(), {});
  for (const Block& block : aligned.blocks) {
    for (const Task& task : block.tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      CHECK((kernel == nullptr || kernel->alignment == 0));
    }
  }
}

TEST_CASE("temporary buffers of an operator live with its task, so many bytes an element") {
  cost::Stack stack = plain_stack();
  stack.rules = {cost::OperatorKernels{.of = "gelu", .temporary = 6_B}};
  const Program program = lower(plan_of(model::gpt(small_gpt), "{}"), stack);
  const Block& block = block_of(program, 1, CellPass::forward);
  const auto task = std::ranges::find(block.tasks, "mlp.gelu", &Task::name);
  REQUIRE(task != block.tasks.end());
  REQUIRE(task->writes.size() == 2);
  const int result = task->writes[0], temporary = task->writes[1];
  CHECK(block.slots[temporary].bytes == 3 * block.slots[result].bytes);  // of fp16
  CHECK(std::ranges::count(task->allocates, temporary) == 1);
  CHECK(task->frees == std::vector{temporary});
}

TEST_CASE("a loss looks up one logit a token, and its gradient reads and writes all") {
  // One rank: a number for every token is 4 bytes, a label 8; a lookup touches at most a sector of
  // 32 bytes a token.
  const double tokens = 12 * 20, classes = 112;
  const Program program = lowered(model::gpt(small_gpt), "{}");
  const auto between = [](Bytes least, Bytes value, Bytes most) {
    return least <= value && value <= most;
  };
  const Block& forward = block_of(program, 5, CellPass::forward);
  CHECK(between(tokens * 12_B, asked(forward, "loss.picked").traffic, tokens * 44_B));
  // log(sum) - picked + maximum: three numbers in, one out.
  const auto alone = std::ranges::find(forward.tasks, "loss", &Task::name);
  REQUIRE(alone != forward.tasks.end());
  const Bytes loss = std::get<cost::Kernel>(alone->work).traffic;
  CHECK(between(tokens * 12_B, loss, tokens * 64_B));
  CHECK(loss < tokens * classes * 2_B / 2);
  // exponential / sum - [label] for every class: fp32 in, fp16 out; sum, label and gradient a
  // token.
  const Block& backward = block_of(program, 5, CellPass::backward);
  CHECK(asked(backward, "loss.B").traffic == tokens * (classes * 6_B + 4_B + 8_B + 4_B));
}

TEST_CASE("copies of the random generator's state move its bytes, and the host waits for each") {
  cost::Stack stack = plain_stack();
  using Copies = cost::RandomStateCopies;
  stack.rules = {Copies{"before recomputed passes", 3, 1000_B},
                 Copies{"before recomputation", 5, 1000_B},
                 Copies{"after recomputation", 7, 1000_B}};
  const Program program = lower(plan_of(model::gpt(small_gpt), R"({"recompute": "full"})"), stack);
  const auto copies = [&](CellPass pass) {
    std::vector<int> found;
    for (const Task& task : block_of(program, 1, pass).tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel == nullptr || kernel->kind != cost::KernelKind::host_copy) continue;
      CHECK(kernel->traffic == task.synchronizations * 1000_B);
      CHECK(kernel->launches == task.synchronizations);
      found.push_back(task.synchronizations);
    }
    return found;
  };
  CHECK(copies(CellPass::forward) == std::vector<int>{3});
  CHECK(copies(CellPass::backward) == std::vector<int>{5, 7});
}

TEST_CASE("a step on the host moves its formula's bytes and, both ways, what the framework keeps") {
  // Adam in fp16: gradient 2, weight written 2, master copy 4 + 4, two states of 4 + 4; kept
  // besides 4 + 4 and 2 + 2. No kernel is launched for it.
  const model::Graph graph = model::gpt(small_gpt);
  cost::Stack stack = plain_stack();
  stack.rules = {cost::ExtraState{"gradient", 4_B}, cost::ExtraState{"average", 2_B}};
  const auto parameters = static_cast<double>(model::gpt_parameters(small_gpt));
  Bytes device, host;
  int launches = 0;
  for (const char* strategy : {"{}", R"({"offload": "optimizer"})"}) {
    const Program program = lower(plan_of(graph, strategy), stack);
    for (const program::Call& call : program.sequences[0].calls) {
      for (const Task& task : program.blocks[call.block].tasks) {
        const auto* kernel = std::get_if<cost::Kernel>(&task.work);
        if (kernel == nullptr) continue;
        if (kernel->kind == cost::KernelKind::optimizer) device += kernel->traffic;
        if (kernel->kind != cost::KernelKind::host_optimizer) continue;
        host += kernel->traffic;
        launches += kernel->launches;
      }
    }
  }
  CHECK(device == parameters * 28_B);
  CHECK(host == parameters * (28_B + 12_B));
  CHECK(launches == 0);
}

TEST_CASE("an axis of one rank is no axis: nothing is communicated along it") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string plain = to_text(lower(strategies::Plan(graph), plain_stack()));
  for (const std::string dim : {"s", "b", "n", "k"}) {
    INFO(dim);
    strategies::Plan plan(graph);
    const placement::Axis alone{.name = "alone", .size = 1, .stride = 1};
    for (const model::OpId op : plan.operators()) {
      const bool divides = model::may_split(*graph.operators[op].annotation, dim);
      plan.assign(plan.trans(op, {.dim = divides ? dim : "", .parts = 1}), alone);
    }
    CHECK(to_text(lower(plan, plain_stack())) == plain);
  }
}

}  // namespace stratagem::lowering::kernels_test
