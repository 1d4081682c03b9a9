// Linear layers in fewer bits in programs: what is cast, gathered, kept and multiplied.
#include <set>
#include <string>

#include "model/adapters.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/trained_gpts.hpp"

namespace stratagem::lowering::cast_test {

using placement::CellPass;
using program::Block;
using program::Call;
using program::Category;
using program::Program;
using program::Slot;
using program::Task;

namespace {

const cost::Kernel& kernel_named(const Block& block, const std::string& name) {
  const auto found = std::ranges::find(block.tasks, name, &Task::name);
  if (found == block.tasks.end()) throw std::out_of_range("no " + name);
  return std::get<cost::Kernel>(found->work);
}

int casts_in(const Block& block) {
  return static_cast<int>(std::ranges::count_if(
      block.tasks, [](const Task& task) { return task.name.ends_with(".cast"); }));
}

/// Bytes of activations that a block leaves for the backward pass.
double kept(const Block& block) {
  std::set<int> left;
  for (const Task& task : block.tasks) {
    left.insert(task.allocates.begin(), task.allocates.end());
    for (const int slot : task.frees) left.erase(slot);
  }
  double bytes = 0;
  for (const int slot : left) {
    if (block.slots[slot].category == Category::activations) bytes += block.slots[slot].bytes.value;
  }
  return bytes;
}

double payload(const Block& block, cost::CollectiveKind kind) {
  double bytes = 0;
  for (const Task& task : block.tasks) {
    const program::Collective* one = collective_of(task);
    if (one != nullptr && one->kind == kind) bytes += one->payload.value;
  }
  return bytes;
}

}  // namespace

TEST_CASE("products of linear layers run in fp8, those of attention and the logits do not") {
  const model::Graph graph = even_gpt(cost::precision_named("fp8"));
  const Program program = lowered(graph, "{}", 1, training("fp8"));
  const Block& forward = block_of(program, 1, CellPass::forward);
  const Block& backward = block_of(program, 1, CellPass::backward);
  const double m = 1024.0 * 8;
  const double k = 1024;
  const double n = 4096;
  // Operands of one byte, results of two.
  const auto traffic = [](double operands, double result) { return operands + 2 * result; };
  const cost::Kernel& product = kernel_named(forward, "mlp.fc1");
  CHECK(product.type == model::DataType::fp8);
  CHECK(product.traffic.value == traffic(m * k + k * n, m * n));
  const cost::Kernel& input = kernel_named(backward, "mlp.fc1.B");
  CHECK(input.type == model::DataType::fp8);
  CHECK(input.traffic.value == traffic(m * n + k * n, m * k));
  const cost::Kernel& weight = kernel_named(backward, "mlp.fc1.W");
  CHECK(weight.type == model::DataType::fp8);
  CHECK(weight.traffic.value == traffic(m * n + m * k, k * n));
  for (const std::string name : {"attention.scores", "attention.context"})
    CHECK(kernel_named(forward, name).type == model::DataType::bf16);
  const Block& head = block_of(program, 3, CellPass::forward);
  CHECK(kernel_named(head, "logits").type == model::DataType::bf16);
  // Inputs of four layers forward, gradients of their outputs backward, once for both products.
  CHECK(casts_in(forward) == 4);
  CHECK(casts_in(backward) == 4);
  CHECK(casts_in(head) == 0);
}

TEST_CASE("casts read for the largest value where scales want it, and write what products read") {
  struct Expected {
    const char* precision;
    int capability;
    double reads;   ///< of 2 bytes
    double copies;  ///< that are written
    double size;    ///< of a number in a copy
    double square;  ///< the same of a weight
  };
  // Hopper's tensor cores want transposed copies; Blackwell's want two where scales are of blocks.
  constexpr double row = 1 + 4.0 / 128, square = 1 + 4.0 / 128 / 128, mx = 1 + 1.0 / 32;
  for (const auto& [precision, capability, reads, copies, size, of_weight] :
       {Expected{"fp8", 90, 1, 2, 1, 1}, Expected{"fp8", 100, 1, 1, 1, 1},
        Expected{"fp8", 120, 1, 2, 1, 1}, Expected{"fp8-current", 90, 2, 2, 1, 1},
        Expected{"fp8-current", 103, 2, 1, 1, 1}, Expected{"fp8-blocks", 90, 1, 2, row, square},
        Expected{"fp8-blocks", 100, 1, 2, row, square}, Expected{"mxfp8", 100, 1, 2, mx, mx},
        Expected{"nvfp4", 100, 2, 2, 0.5 + 1.0 / 16, 0.5 + 1.0 / 16}}) {
    INFO(precision << " on " << capability);
    cost::Training of = training(precision);
    cost::choose_copies(of.precision, capability);
    const Program program = lowered(even_gpt(of.precision), "{}", 1, of);
    const double elements = 1024.0 * 8 * 1024;
    const Block& forward = block_of(program, 1, CellPass::forward);
    const cost::Kernel& cast = kernel_named(forward, "mlp.fc1.cast");
    CHECK(cast.traffic.value == elements * (2 * reads + copies * size));
    // So it is with the gradients of outputs: of the projection and fc2 as wide, of qkv and fc1
    // 3 and 4 times.
    double gradients = 0;
    for (const Task& task : block_of(program, 1, CellPass::backward).tasks) {
      if (task.name.ends_with(".B.cast"))
        gradients += std::get<cost::Kernel>(task.work).traffic.value;
    }
    CHECK(gradients == (1 + 1 + 3 + 4) * cast.traffic.value);
    // One copy is kept for the product of the weight's gradient.
    CHECK(kernel_named(forward, "mlp.fc1").traffic.value ==
          size * elements + of_weight * 4 * 1024.0 * 1024 + 2 * 4 * elements);
    const double linear = 2 * 12.0 * 1024 * 1024;
    CHECK(held(program, Category::parameters) ==
          2 * static_cast<double>(model::parameter_count(even_gpt(of.precision))) +
              copies * of_weight * linear);
    for (const Call& call : program.sequences[0].calls) {
      const Block& block = program.blocks[call.block];
      if (block.name != "cast parameters") continue;
      double traffic = 0;
      for (const Task& task : block.tasks)
        traffic += std::get<cost::Kernel>(task.work).traffic.value;
      CHECK(traffic == linear * (2 * reads + copies * of_weight));
    }
  }
}

TEST_CASE("what experts read may be cast by kernels of each expert's own") {
  model::LlamaConfig config{.layers = 2,
                            .hidden = 64,
                            .heads = 8,
                            .kv_heads = 4,
                            .intermediate = 128,
                            .sequence = 32,
                            .vocabulary = 56,
                            .batch = 2};
  config.experts = {.count = 6, .per_token = 2};
  cost::Stack one_by_one = plain_stack();
  one_by_one.rules = {cost::OperatorKernels{.of = "cast", .launches = 2},
                      cost::OperatorKernels{.of = "cast", .each_expert = true, .launches = 4}};
  const auto launches = [&](const cost::Stack& stack, const std::string& name) {
    const cost::Training mx = training("mxfp8");
    config.type = mx.precision.values;
    const model::Graph graph = model::cast_products(model::llama(config), mx.precision.products);
    const Program program = lower(plan_of(graph, "{}"), stack, mx);
    return kernel_named(block_of(program, 1, CellPass::forward), name).launches;
  };
  CHECK(launches(plain_stack(), "mlp.gate_up.cast") == 1);
  CHECK(launches(one_by_one, "mlp.gate_up.cast") == 6 * 4);
  CHECK(launches(one_by_one, "attention.qkv.cast") == 2);
  CHECK_THROWS(launches(plain_stack(), "mlp.router.cast"));  // in bf16
}

TEST_CASE("operands that do not consist of whole blocks are refused, with the operator") {
  const auto refused = [](const char* precision, std::int64_t hidden, std::int64_t sequence) {
    model::GptConfig config = small_gpt;
    config.hidden = hidden;
    config.sequence = sequence;
    const cost::Training of = training(precision);
    config.type = of.precision.values;
    const model::Graph graph = model::cast_products(model::gpt(config), of.precision.products);
    return refusal([&] { lower(plan_of(graph, "{}"), plain_stack(), of); });
  };
  CHECK(refused("mxfp8", 96, 64).empty());
  CHECK_THAT(refused("mxfp8", 48, 64),
             StartsWith("/training/precision: expected in mxfp8 operands of linear layers with "
                        "rows of a multiple of 32 numbers, and a multiple of 32 rows, on every "
                        "rank, found"));
  CHECK_THAT(refused("mxfp8", 96, 4),
             ContainsSubstring("48 rows of 96 before layers.0.attention.qkv"));
  CHECK(refused("nvfp4", 48, 4).empty());
  CHECK(refused("fp8", 48, 2).empty());
  CHECK_FALSE(refused("fp8", 24, 2).empty());
  CHECK_FALSE(refused("fp8", 48, 1).empty());
}

TEST_CASE("a norm that casts as well has a norm's kernel, and writes what others read") {
  const cost::Precision fp8 = cost::precision_named("fp8");
  model::GptConfig config = small_gpt;
  config.type = fp8.values;
  const model::Graph graph = model::cast_products(model::gpt(config), fp8.products);
  const auto saved = [&](const model::Graph& of, const std::string& norm, const std::string& cast) {
    const auto forward = [&](const cost::Stack& stack) {
      return block_of(lower(plan_of(of, "{}"), stack, training("fp8")), 1, CellPass::forward);
    };
    cost::Stack stack = plain_stack();
    const Block apart = forward(stack);
    stack.rules = {cost::Fusion{{"layer_norm", "cast"}, "layer_norm"}};
    const Block together = forward(stack);
    const cost::Kernel& fused = kernel_named(together, norm + " + " + cast);
    CHECK(fused.kind == cost::KernelKind::norm);
    CHECK(fused.launches == 1);
    return kernel_named(apart, norm).traffic.value + kernel_named(apart, cast).traffic.value -
           fused.traffic.value;
  };
  const double elements = 12.0 * 20 * 48;
  CHECK(saved(graph, "mlp_norm", "mlp.fc1.cast") == 2 * 2 * elements);  // neither written nor read
  // An adapter reads the norm's result as it is: that is written, too.
  const model::Graph adapted = model::with_adapters(
      graph, 16, [](const model::Tensor& tensor) { return tensor.name.ends_with("fc1.weight"); });
  CHECK(saved(adapted, "mlp_norm", "mlp.fc1.cast") == 2 * elements);
}

TEST_CASE("linear layers in fp8 keep a byte of each input for the backward pass") {
  // Of qkv, projection and fc1 b*s*h each, of fc2 4*b*s*h: Korthikanti's 34 bytes become 27.
  const auto left = [](const char* precision) {
    const model::Graph graph = even_gpt(cost::precision_named(precision));
    const Program program = lowered(graph, "{}", 1, training(precision));
    return kept(block_of(program, 1, CellPass::forward));
  };
  CHECK(left("bf16") - left("fp8") == 7.0 * 1024 * 8 * 1024);
}

TEST_CASE("tensor ranks that divide tokens gather what is cast, and scatter what is not") {
  const std::string strategy = R"({"tensor": 4, "sequence_parallel": true})";
  const auto moved = [&](const char* precision, CellPass pass, cost::CollectiveKind kind) {
    const model::Graph graph = even_gpt(cost::precision_named(precision));
    const Program program = lowered(graph, strategy, 1, training(precision));
    return payload(block_of(program, 1, pass), kind);
  };
  using enum cost::CollectiveKind;
  const double bsh = 1024.0 * 8 * 1024;
  // Forward the inputs of qkv and fc1; backward these again, and gradients of the others' outputs.
  CHECK(moved("fp8", CellPass::forward, all_gather) == 2 * bsh);
  CHECK(moved("bf16", CellPass::forward, all_gather) == 2 * 2 * bsh);
  CHECK(moved("fp8", CellPass::backward, all_gather) == 4 * bsh);
  CHECK(moved("bf16", CellPass::backward, all_gather) == 2 * 4 * bsh);
  for (const CellPass pass : {CellPass::forward, CellPass::backward})
    CHECK(moved("fp8", pass, reduce_scatter) == moved("bf16", pass, reduce_scatter));
}

TEST_CASE("weights of linear layers have two fp8 copies, cast anew once an iteration") {
  const model::Graph graph = even_gpt(cost::precision_named("fp8"));
  const auto parameters = static_cast<double>(model::parameter_count(graph));
  const double linear = 2 * 12.0 * 1024 * 1024;
  for (const std::string strategy : {"{}", R"({"data": 4})", R"({"data": 4, "zero": 2})",
                                     R"({"data": 4, "zero": 2, "offload": "optimizer"})"}) {
    INFO(strategy);
    const Program program = lowered(graph, strategy, 3, training("fp8"));
    CHECK(held(program, Category::parameters) == 2 * parameters + 2 * linear);
    double traffic = 0;
    for (const Call& call : program.sequences[0].calls) {
      const Block& block = program.blocks[call.block];
      if (block.name != "cast parameters") continue;
      for (const Task& task : block.tasks)
        traffic += std::get<cost::Kernel>(task.work).traffic.value;
    }
    CHECK(traffic == 4 * linear);
  }
  const auto of_two = [](const char* precision) {
    const model::Graph of = even_gpt(cost::precision_named(precision));
    return held(lowered(of, R"({"tensor": 2})", 1, training(precision)), Category::parameters);
  };
  CHECK(of_two("fp8") == of_two("bf16") + linear);
}

TEST_CASE("ranks that divide weights gather copies of shards in fewer bits, if the stack says so") {
  const cost::Training how = training("mxfp8");
  const model::Graph graph = even_gpt(how.precision);
  CHECK_THAT(refusal([&] { lowered(graph, zero(3, 2), 1, how); }),
             StartsWith("/strategy/zero: expected weights that stay whole where linear layers"));
  cost::Stack stack = plain_stack();
  stack.rules = {cost::GatheredWeights::as_products_read_them};
  const Program program = lower(plan_of(graph, zero(3, 4), 2), stack, how);
  const model::Graph plain = even_gpt(cost::precision_named("bf16"));
  const Program in_bf16 = lower(plan_of(plain, zero(3, 4), 2), plain_stack(), training("bf16"));
  // All weights, forward and backward, for each of two micro-batches: matrices in 33/32 of a byte.
  const double linear = 2 * 12.0 * 1024 * 1024;
  constexpr double size = 33.0 / 32;
  const auto gathered = [](const Program& one) {
    double bytes = 0;
    for (const Call& call : one.sequences[0].calls)
      bytes += payload(one.blocks[call.block], cost::CollectiveKind::all_gather);
    return bytes;
  };
  CHECK(gathered(in_bf16) - gathered(program) == 2 * 2 * linear * (2 - size));
  // A quarter of the weights in bf16 and of both copies, which are cast from that quarter.
  CHECK(held(program, Category::parameters) - held(in_bf16, Category::parameters) ==
        2 * size * linear / 4);
  double casts = 0;
  for (const Call& call : program.sequences[0].calls) {
    const Block& block = program.blocks[call.block];
    if (block.name != "cast parameters") continue;
    for (const Task& task : block.tasks) casts += std::get<cost::Kernel>(task.work).traffic.value;
  }
  CHECK(casts == linear / 4 * (2 + 2 * size));
  // What is gathered for a pass is as large as what products read.
  for (const Slot& slot : block_of(program, 1, CellPass::forward).slots) {
    if (slot.category == Category::gathered_parameters && slot.name.ends_with("fc1.weight"))
      CHECK(slot.bytes.value == 4 * 1024.0 * 1024 * size);
  }
  CHECK_THAT(refusal([&] {
               lower(plan_of(graph, R"({"data": 2, "zero": 3, "offload": "parameters"})"), stack,
                     how);
             }),
             ContainsSubstring("found weights on the host"));
}

}  // namespace stratagem::lowering::cast_test
