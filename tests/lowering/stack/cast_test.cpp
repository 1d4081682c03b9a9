// Linear layers in fp8 in programs: what is cast, gathered, kept and multiplied.
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/lowering/trained_gpts.hpp"

namespace stratagem::lowering::cast_test {

using placement::CellPass;
using program::Block;
using program::Call;
using program::Category;
using program::Program;
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
  // 2 bytes are read, 1 is written.
  for (const Task& task : forward.tasks) {
    if (!task.name.ends_with(".cast")) continue;
    const Bytes copy = forward.slots[task.writes.at(0)].bytes;
    CHECK(std::get<cost::Kernel>(task.work).traffic == 3 * copy);
  }
}

TEST_CASE("a norm that casts as well has a norm's kernel, and writes what others read") {
  const cost::Precision fp8 = cost::precision_named("fp8");
  const auto kernels = [&](model::GptConfig config, bool fused) {
    config.type = fp8.values;
    const model::Graph graph = model::cast_products(model::gpt(config), fp8.products);
    cost::Stack stack = plain_stack();
    if (fused) stack.rules = {cost::Fusion{{"layer_norm", "cast"}, "layer_norm"}};
    const Program program = lower(plan_of(graph, "{}"), stack, training("fp8"));
    return block_of(program, 1, CellPass::forward);
  };
  const auto saved = [&](const model::GptConfig& config, const std::string& cast) {
    const Block apart = kernels(config, false), together = kernels(config, true);
    const cost::Kernel& fused = kernel_named(together, "mlp_norm + " + cast);
    CHECK(fused.kind == cost::KernelKind::norm);
    CHECK(fused.launches == 1);
    return kernel_named(apart, "mlp_norm").traffic.value + kernel_named(apart, cast).traffic.value -
           fused.traffic.value;
  };
  const double elements = 12.0 * 20 * 48;
  CHECK(saved(small_gpt, "mlp.fc1.cast") == 2 * 2 * elements);  // neither written nor read
  model::GptConfig experts = small_gpt;
  experts.experts.count = 4;
  experts.experts.per_token = 2;
  experts.experts.every = 1;
  // Tokens are dispatched to experts as they are: what the router reads in fp8 is written, too.
  CHECK(saved(experts, "mlp.router.cast") == 2 * elements);
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

TEST_CASE("weights that ZeRO divides are refused where linear layers multiply in fp8") {
  const model::Graph graph = even_gpt(cost::precision_named("fp8"));
  CHECK_THAT(refusal([&] { lowered(graph, zero(3, 2), 1, training("fp8")); }),
             StartsWith("/strategy/zero: expected weights that stay whole where linear layers"));
}

}  // namespace stratagem::lowering::cast_test
