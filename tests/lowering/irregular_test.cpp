// Stages whose operators stand on different devices, in different numbers of parts, or in unequal
// ones.
#include <algorithm>
#include <map>
#include <tuple>

#include "lowering/redistribute/redistribute.hpp"
#include "lowering/stages/operands.hpp"
#include "model/zoo/llama.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/lowering/redistribute/played.hpp"
#include "tests/lowering/replay.hpp"
#include "tests/model/zoo/parameters.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::lowering::irregular_test {

using program::Category;
using program::Program;
using program::Stream;
using strategies::Plan;

namespace {

/// Stream, kind, bytes and ranks of a collective as one device runs it.
using Run = std::tuple<Stream, cost::CollectiveKind, double, std::vector<int>>;

std::vector<Run> runs_of(const Program& program, int device) {
  std::vector<Run> runs;
  const program::Device& here = program.devices[device];
  for (const program::Call& call : program.sequences[here.sequence].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      const program::Collective* one = collective_of(task);
      if (one == nullptr) continue;
      std::vector<int> ranks = program.communicators[here.groups[one->group]].ranks;
      if (!transfers(task.stream)) std::ranges::sort(ranks);
      runs.emplace_back(task.stream, one->kind, one->payload.value, ranks);
    }
  }
  std::ranges::sort(runs);
  return runs;
}

std::vector<Run> all_runs(const Program& program) {
  std::vector<Run> all;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    for (const Run& run : runs_of(program, static_cast<int>(device))) all.push_back(run);
  }
  return all;
}

Bytes resident_on(const Program& program, int device, Category category) {
  return resident(program.sequences[program.devices[device].sequence], category);
}

/// The groups of devices that sum up gradients, with the bytes.
std::map<std::vector<int>, double> sums(const Program& program) {
  std::map<std::vector<int>, double> result;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    for (const auto& [stream, kind, bytes, ranks] : runs_of(program, static_cast<int>(device))) {
      if (stream == Stream::gradient_communication && ranks.front() == static_cast<int>(device))
        result[ranks] += bytes;
    }
  }
  return result;
}

/// A stack that says something of everything that blocks are lowered by.
cost::Stack busy_stack() {
  cost::Stack stack = plain_stack();
  using cost::CollectiveKind;
  using model::Pass;
  using Beside = cost::CollectiveBeside;
  using Copies = cost::RandomStateCopies;
  stack.rules = {cost::Fusion{{"bias_add", "gelu"}},
                 cost::Fusion{{"dropout", "add"}},
                 cost::Fusion{{"silu", "multiply"}},
                 Beside{CollectiveKind::all_reduce, true, Pass::weight_gradient},
                 Beside{CollectiveKind::reduce_scatter, true, Pass::weight_gradient},
                 Beside{CollectiveKind::all_gather, false, Pass::input_gradient},
                 cost::HeldInputs{"masked_softmax", "merge_heads"},
                 cost::OperatorKernels{.of = "gelu", .synchronizations = 1},
                 Copies{"before attention_dropout", 2, 800_B},
                 Copies{"after attention_dropout", 1, 800_B},
                 Copies{"before recomputed passes", 1, 800_B},
                 Copies{"before recomputation", 2, 800_B},
                 Copies{"after recomputation", 1, 800_B}};
  return stack;
}

/// The tasks of a device's cells, with what they allocate and free.
std::vector<std::string> tasks_of(const Program& program, int device) {
  std::vector<std::string> tasks;
  const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
  for (const program::Call& call : sequence.calls) {
    if (call.segment < 0 || ends_iteration(program, call)) continue;
    const program::Block& block = program.blocks[call.block];
    for (const program::Task& task : block.tasks) {
      std::string text = block.name + ": " + task.name + " on " +
                         std::to_string(static_cast<int>(task.stream)) + ", waits";
      for (const int wait : task.waits) text += " " + block.tasks[wait].name;
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel != nullptr)
        text += ", " + std::to_string(kernel->launches) + " move " +
                std::to_string(kernel->traffic.value);
      for (const auto* slots : {&task.allocates, &task.frees}) {
        text += ", slots";
        for (const int slot : *slots)
          text +=
              " " + block.slots[slot].name + " " + std::to_string(block.slots[slot].bytes.value);
      }
      tasks.push_back(std::move(text));
    }
  }
  return tasks;
}

/// What the parts of an operator leave, or read first.
std::vector<Piece> pieces(const Plan& plan, model::OpId op, bool output) {
  const Operands operands = operands_of(plan, {.listed = {0}}, 0, op);
  std::vector<Piece> result;
  for (const auto& [device, part] : (output ? operands.leaves : operands.reads).front())
    result.push_back({device, *part.mask});
  return result;
}

}  // namespace

TEST_CASE("a uniform plan written as lists of devices becomes the same work on every device") {
  // A table on two stages would be another case: the uniform path sums its gradient within each
  // stage, then across, the general one over all devices at once.
  model::GptConfig untied = small_gpt;
  untied.tied = false;
  const model::Graph graph = model::gpt(untied);
  for (const std::string strategy :
       {R"({"data": 2})", R"({"tensor": 2})", R"({"data": 2, "tensor": 2})",
        R"({"tensor": 2, "recompute": "full"})", R"({"tensor": 4, "sequence_parallel": true})",
        R"({"pipeline": 2, "data": 2, "schedule": "1f1b"})",
        R"({"pipeline": 2, "replicas_per_stage": [2, 1]})"}) {
    INFO(strategy);
    const Plan plan = plan_of(graph, strategy, 2);
    const Program uniform = lower(plan, plain_stack());
    const Program listed = lower(with_lists(plan), plain_stack());
    check_program(graph, listed);
    CHECK(flops_once(listed) == flops_once(uniform));
    CHECK(hardware_flops(listed) == hardware_flops(uniform));
    REQUIRE(listed.devices.size() == uniform.devices.size());
    for (int device = 0; device < static_cast<int>(uniform.devices.size()); ++device) {
      INFO("device " << device);
      CHECK(runs_of(listed, device) == runs_of(uniform, device));
      for (const Category category :
           {Category::parameters, Category::gradients, Category::optimizer_states})
        CHECK(resident_on(listed, device, category) == resident_on(uniform, device, category));
    }
  }
}

TEST_CASE("what a stack fuses, casts, holds and runs beside is the same where devices are listed") {
  const model::Graph gpt = model::gpt(small_gpt);
  const model::Graph llama = model::llama({.layers = 2,
                                           .hidden = 48,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .intermediate = 112,
                                           .sequence = 20,
                                           .vocabulary = 56,
                                           .batch = 4,
                                           .fused = {.swiglu = false}});
  for (const model::Graph* graph : {&gpt, &llama}) {
    for (const std::string strategy :
         {R"({"data": 2})", R"({"tensor": 2})", R"({"data": 2, "tensor": 2})",
          R"({"tensor": 2, "recompute": "full"})", R"({"tensor": 4, "sequence_parallel": true})"}) {
      INFO(graph->name << " " << strategy);
      const Plan plan = plan_of(*graph, strategy);
      const Program uniform = lower(plan, busy_stack());
      const Program listed = lower(with_lists(plan), busy_stack());
      const auto devices = static_cast<int>(uniform.devices.size());
      for (int device = 0; device < devices; ++device) {
        INFO("device " << device);
        CHECK(tasks_of(listed, device) == tasks_of(uniform, device));
      }
    }
  }
}

TEST_CASE("rows on two devices become columns by one all-to-all") {
  // The example of nnScaler's figure 4: two producers by rows, two consumers by columns.
  const model::Graph graph = product_chain(2);
  Plan plan(graph);
  divide(plan, "all.shift", "r", {0, 1});
  divide(plan, "all.product0", "r", {0, 1});
  divide(plan, "all.product1", "k", {0, 1});
  const Program program = lower(plan, plain_stack());
  check_program(graph, program);
  for (int device = 0; device < 2; ++device) {
    const program::Block& forward = block_of(program, 0, placement::CellPass::forward, device);
    const std::vector<program::Collective> moves = collectives(forward);
    REQUIRE(moves.size() == 1);
    CHECK(moves[0].kind == cost::CollectiveKind::all_to_all);
    CHECK(moves[0].payload == 12.0 / 2 * 8 * 2_B);
  }
}

TEST_CASE("an operator on four devices feeds one on two and one on three") {
  const model::Graph graph = product_chain(3);
  const Program program = lower(four_two_three(graph), plain_stack());
  check_program(graph, program);
  // 2 * 12 * 8 * 8 per product and pass, forward, input and weight gradients, whoever computes
  // them.
  CHECK(close(hardware_flops(program), Flops{3 * 3 * 2.0 * 12 * 8 * 8}, 1e-12));
  // Product 1 needs all rows on devices 0 and 2. Its result's columns go to rows on 1, 2, 3.
  const Bytes quarter = 3.0 * 8 * 2_B;
  for (const auto& [stream, kind, bytes, ranks] : runs_of(program, 1)) {
    if (stream == Stream::send_forward) CHECK(Bytes{bytes} == quarter);
  }
  CHECK(resident_on(program, 0, Category::parameters) == (64.0 + 32) * 2_B);
  CHECK(resident_on(program, 1, Category::parameters) == (64.0 + 64) * 2_B);
  CHECK(resident_on(program, 2, Category::parameters) == (64.0 + 32 + 64) * 2_B);
  CHECK(resident_on(program, 3, Category::parameters) == (64.0 + 64 + 8) * 2_B);
}

TEST_CASE("gradients are summed by the devices that have terms of the same part") {
  const model::Graph graph = product_chain(3);
  // Product 0 is divided by rows: all four have a term of its weight's gradient, product 2's three
  // devices, too. Product 1's columns are nobody else's.
  const auto expected = std::map<std::vector<int>, double>{{{0, 1, 2, 3}, 128}, {{1, 2, 3}, 128}};
  CHECK(sums(lower(four_two_three(graph), plain_stack())) == expected);
}

TEST_CASE("replicas compute equal gradients: each sums with others only") {
  // Twice replicated, each divided by rows in two: parts (replica, rows) on devices 0 to 3.
  const model::Graph graph = product_chain(1);
  Plan plan(graph);
  const model::OpId product = operator_named(graph, "all.product0");
  plan.trans(product, {.dim = "", .parts = 2});
  plan.trans(product, {.dim = "r", .parts = 2});
  plan.assign(product, {0, 1, 2, 3});
  divide(plan, "all.shift", "", {0, 1, 2, 3});
  const Program program = lower(plan, plain_stack());
  check_program(graph, program);
  CHECK(sums(program) == std::map<std::vector<int>, double>{{{0, 1}, 128}, {{2, 3}, 128}});
}

TEST_CASE("a vocabulary of 50257 lies unevenly on eight devices") {
  model::GptConfig config = small_gpt;
  config.vocabulary = 50257;
  const model::Graph graph = model::gpt(config);
  const Program program = lower(uneven_words(graph, 8), plain_stack());
  check_program(graph, program);
  // 50257 = 6283 + 7 * 6282 rows of 48.
  CHECK(resident_on(program, 1, Category::parameters) == 6282.0 * 48 * 2_B);
  CHECK(resident_on(program, 7, Category::parameters) == 6282.0 * 48 * 2_B);
  const double others = static_cast<double>(model::gpt_parameters(config)) - 50257.0 * 48;
  CHECK(resident_on(program, 0, Category::parameters) == (others + 6283.0 * 48) * 2_B);
  const Program whole = lower(Plan(graph), plain_stack());
  CHECK(close(hardware_flops(program), hardware_flops(whole), 1e-12));
}

TEST_CASE("a segment stands on devices 0, 2 and 5, others between them") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan = plan_of(graph, R"({"pipeline": 2, "schedule": "gpipe"})", 2);
  for (std::size_t segment = 0; segment < graph.segments.size(); ++segment) {
    for (const model::OpId op : graph.segments[segment].forward) {
      const std::vector<int> devices =
          segment < 3 ? std::vector<int>{0, 2, 5} : std::vector<int>{1, 3, 4};
      plan.trans(op, {.dim = batch_dimension(plan, op), .parts = 3});
      plan.assign(op, devices);
    }
  }
  const Program program = lower(plan, plain_stack());
  check_program(graph, program);
  REQUIRE(program.devices.size() == 6);
  CHECK(cells_of(program, program.devices[5].sequence) == "F0 F1 B0 B1");
  // The token table is on all six, the rest on three each.
  std::set<std::vector<int>> groups;
  for (const auto& [ranks, bytes] : sums(program)) groups.insert(ranks);
  CHECK(groups == std::set<std::vector<int>>{{0, 2, 5}, {1, 3, 4}, {0, 1, 2, 3, 4, 5}});
}

TEST_CASE("what one device sends, another receives, and nothing is left over") {
  const model::Graph graph = product_chain(3);
  std::map<std::tuple<std::vector<int>, double, bool>, int> balance;  // by ranks, bytes, direction
  const Program program = lower(four_two_three(graph), plain_stack());
  for (const auto& [stream, kind, bytes, ranks] : all_runs(program)) {
    if (!transfers(stream)) continue;
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const bool backward = stream >= Stream::send_backward;
    balance[{ranks, bytes, backward}] += sends ? static_cast<int>(ranks.size()) - 1 : -1;
  }
  REQUIRE_FALSE(balance.empty());
  for (const auto& [key, left] : balance) CHECK(left == 0);
}

TEST_CASE("a table on a regular stage and on an irregular one is summed by all its devices") {
  // Stage 1 is irregular, for one of its operators stands in other parts than the rest.
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan = plan_of(graph, R"({"pipeline": 2, "data": 2, "schedule": "1f1b"})", 3);
  plan.assign(operator_named(graph, "layers.3.mlp.gelu"), {3, 2});
  const Program program = lower(plan, plain_stack());
  check_program(graph, program);
  const double table = 112.0 * 48 * 2;
  CHECK(sums(program).at({0, 1, 2, 3}) == table);
  // The rest of stage 1 is summed by its two devices: two layers and the final norm.
  const double layer = 12.0 * 48 * 48 + 13.0 * 48;
  CHECK(sums(program).at({2, 3}) == (2 * layer + 2 * 48) * 2);
  for (int device = 0; device < 4; ++device)
    CHECK(cells_of(program, program.devices[device].sequence) ==
          (device < 2 ? "F0 F1 B0 F2 B1 B2" : "F0 B0 F1 B1 F2 B2"));
}

TEST_CASE("whatever the parts and devices, buffers live as they should and no work is lost") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Flops whole = hardware_flops(lower(Plan(graph), plain_stack()));
  for (unsigned seed = 0; seed < 40; seed += stride(5)) {
    INFO("seed " << seed);
    const Program program = lower(random_plan(graph, 5, seed), plain_stack());
    check_program(graph, program);
    CHECK(flops_once(program).value >= whole.value * (1 - 1e-12));
    const Program stages = lower(random_pipeline(graph, 5, seed), plain_stack());
    if (seed % 2 == 0)
      check_program(graph, stages);  // weight cells have no name in check_gradients
    CHECK(close(flops_once(stages), flops_once(program), 1e-12));
  }
}

TEST_CASE("every element and partial value that an operator reads comes from its producers once") {
  const model::Graph graph = product_chain(4);
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const Plan plan = random_plan(graph, 4, seed);
    for (int i = 0; i + 1 < 4; ++i) {
      const model::OpId from = operator_named(graph, "all.product" + std::to_string(i));
      const model::OpId to = operator_named(graph, "all.product" + std::to_string(i + 1));
      const std::vector<Piece> made = pieces(plan, from, true);
      const std::vector<Piece> read = pieces(plan, to, false);
      PlayedSteps played(made);
      played.run(redistribute({12, 8}, made, read));
      demand_delivery(played, read);
    }
  }
  SUCCEED("no demand failed");
}

TEST_CASE("one device sees one part of a parameter, and two devices equal or disjoint ones") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::vector<int>& lookup, const std::vector<int>& logits) {
    Plan plan = uneven_words(graph, 1);
    divide(plan, "embedding.lookup", "vocabulary", lookup);
    for (const model::OpId op : plan.operators()) {
      if (graph.operators[op].name == "head.logits")
        divide(plan, "head.logits", "vocabulary", logits);
    }
    return refusal([&] { lower(plan, plain_stack()); });
  };
  CHECK_THAT(refused({0, 1}, {1, 0}), ContainsSubstring("embedding.words"));
  CHECK_THAT(refused({0, 1}, {2, 3, 4}), ContainsSubstring("embedding.words"));
}

}  // namespace stratagem::lowering::irregular_test
