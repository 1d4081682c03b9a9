// ZeRO: bytes and volumes of the published tables, groups, buckets, and what is refused.
#include <cmath>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::zero_test {

using lowering::lower;
using lowering::lowered;
using lowering::plain_stack;
using lowering::refusal;
using lowering::resident;
using lowering::small_gpt;
using placement::CellPass;
using program::Call;
using program::Category;
using program::Collective;
using program::Program;
using program::Stream;
using program::Task;

namespace {

/// Every parameter has a multiple of 1024 elements.
model::Graph even_gpt() {
  return model::gpt({.layers = 2,
                     .hidden = 1024,
                     .heads = 8,
                     .sequence = 8,
                     .vocabulary = 2048,
                     .batch = 1024,
                     .tied = false});
}

std::string zero(int stage, int ranks, const std::string& more = "") {
  return "{\"data\": " + std::to_string(ranks) + ", \"zero\": " + std::to_string(stage) + more +
         "}";
}

double per_parameter(const model::Graph& graph, const Program& program) {
  Bytes bytes;
  for (const Category one : {Category::parameters, Category::gradients, Category::optimizer_states})
    bytes += resident(program.sequences[0], one);
  return bytes.value / static_cast<double>(model::parameter_count(graph));
}

std::size_t ranks_of(const Program& program, const Collective& collective) {
  return program.communicators[program.devices[0].groups[collective.group]].ranks.size();
}

/// Elements of two bytes that a rank sends in an iteration, over those of all parameters.
double volume(const model::Graph& graph, const Program& program) {
  double bytes = 0;
  for (const Call& call : program.sequences[0].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      const Collective* work = lowering::collective_of(task);
      if (work == nullptr) continue;
      const auto n = static_cast<double>(ranks_of(program, *work));
      const int rounds = work->kind == cost::CollectiveKind::all_reduce ? 2 : 1;
      bytes += rounds * (n - 1) / n * work->payload.value;
    }
  }
  return bytes / 2 / static_cast<double>(model::parameter_count(graph));
}

}  // namespace

// Rajbhandari et al., ZeRO, SC 2020, figure 1 and table 1: 16, 4 + 12/N, 2 + 14/N and 16/N bytes a
// parameter; 7.5e9 parameters on 64 GPUs take 120, 31.4, 16.6 and 1.9 GB.
TEST_CASE("weights, gradients and states take the bytes of ZeRO's table") {
  const model::Graph graph = even_gpt();
  for (const int n : {1, 4, 16, 64, 256, 1024}) {
    INFO(n << " ranks");
    CHECK(per_parameter(graph, lowered(graph, zero(0, n))) == 16);
    CHECK(per_parameter(graph, lowered(graph, zero(1, n))) == 4 + 12.0 / n);
    CHECK(per_parameter(graph, lowered(graph, zero(2, n))) == 2 + 14.0 / n);
    CHECK(per_parameter(graph, lowered(graph, zero(3, n))) == 16.0 / n);
  }
  const auto gigabytes = [&](double parameters, int stage, int n) {
    return per_parameter(graph, lowered(graph, zero(stage, n))) * parameters / 1e9;
  };
  CHECK(std::abs(gigabytes(7.5e9, 1, 64) - 31.4) <= 0.05);
  CHECK(std::abs(gigabytes(7.5e9, 2, 64) - 16.6) <= 0.05);
  CHECK(std::abs(gigabytes(7.5e9, 3, 64) - 1.9) <= 0.05);
  CHECK(std::abs(gigabytes(128e9, 1, 64) - 536) <= 1e-9);
  CHECK(std::abs(gigabytes(128e9, 2, 64) - 284) <= 1e-9);
  CHECK(std::abs(gigabytes(128e9, 3, 64) - 32) <= 1e-9);
  CHECK(std::abs(gigabytes(1e12, 1, 1024) - 4011.72) <= 0.005);
  CHECK(std::abs(gigabytes(1e12, 2, 1024) - 2013.67) <= 0.005);
  CHECK(std::abs(gigabytes(1e12, 3, 1024) - 15.625) <= 1e-9);
}

TEST_CASE("a shard of a parameter that does not divide is filled up") {
  const model::Graph graph = model::gpt(small_gpt);
  double elements = 0;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.role == model::Role::parameter)
      elements += std::ceil(static_cast<double>(model::element_count(tensor)) / 12);
  }
  const Program program = lowered(graph, zero(3, 12));
  CHECK(resident(program.sequences[0], Category::parameters).value == 2 * elements);
  CHECK(resident(program.sequences[0], Category::optimizer_states).value == 12 * elements);
}

// Section 7 of the same: 2, 2, 2 and 3 times the parameters, less 1/N.
TEST_CASE("a step communicates twice the parameters, with sharded parameters three times") {
  const model::Graph graph = even_gpt();
  for (const int n : {2, 16, 64}) {
    INFO(n << " ranks");
    const double share = (n - 1.0) / n;
    for (const std::string more : {"", R"(, "bucket": "1 MB")", R"(, "recompute": "full")",
                                   R"(, "overlap_gradients": false)"}) {
      INFO(more);
      CHECK(close(volume(graph, lowered(graph, zero(0, n, more))), 2 * share, 1e-12));
      CHECK(close(volume(graph, lowered(graph, zero(1, n, more))), 2 * share, 1e-12));
      CHECK(close(volume(graph, lowered(graph, zero(2, n, more))), 2 * share, 1e-12));
      CHECK(close(volume(graph, lowered(graph, zero(3, n, more))), 3 * share, 1e-12));
    }
  }
}

TEST_CASE("ranks that sum up whole gradients send half as much again, and keep the same") {
  const model::Graph graph = even_gpt();
  cost::Stack stack = plain_stack();
  stack.rules = {cost::StepSums::whole_gradients};
  for (const int n : {2, 4, 16}) {
    CAPTURE(n);
    const Program whole = lower(lowering::plan_of(graph, zero(1, n), 2), stack, {});
    // An all-reduce and a gather, where a reduce-scatter and a gather are usual.
    CHECK(close(volume(graph, whole), 3.0 * (n - 1) / n, 1e-12));
    CHECK(per_parameter(graph, whole) == 4 + 12.0 / n);
    // ZeRO 2 has the shards alone to step: nothing is left to sum up.
    const Program shards = lower(lowering::plan_of(graph, zero(2, n), 2), stack, {});
    CHECK(close(volume(graph, shards), volume(graph, lowered(graph, zero(2, n), 2)), 1e-12));
  }
}

TEST_CASE("a tied table's whole gradient is summed between its stages where ranks sum whole ones") {
  // The last sum of two stages is over both replicas' copies: of a quarter of the table, or of all.
  const model::Graph graph = model::gpt(small_gpt);
  const Plan plan =
      lowering::plan_of(graph, R"({"data": 4, "zero": 1, "pipeline": 2, "schedule": "1f1b"})", 2);
  const auto table = static_cast<double>(small_gpt.vocabulary * small_gpt.hidden) * 2_B;
  cost::Stack stack = plain_stack();
  for (const double share : {0.25, 1.0}) {
    CAPTURE(share);
    if (share == 1) stack.rules = {cost::StepSums::whole_gradients};
    const Program program = lower(plan, stack, {});
    CHECK(lowering::collectives(program, 0, Stream::gradient_communication).back().payload ==
          share * table);
  }
}

TEST_CASE("steps of flat shares have the kernels of one tensor of as many as there are ranks") {
  const model::Graph graph = even_gpt();
  const auto counted = [&](const std::string& strategy, bool flat) {
    cost::Stack stack = plain_stack();
    cost::OperatorKernels steps{.of = "optimizer_step", .launches = 4, .synchronizations = 2};
    steps.flat_shares = flat;
    stack.rules = {steps};
    const Program program = lower(lowering::plan_of(graph, strategy, 2), stack, {});
    std::pair<int, int> launches_and_waits;
    for (const Call& call : program.sequences[0].calls) {
      for (const Task& task : program.blocks[call.block].tasks) {
        if (!task.name.ends_with(".step")) continue;
        launches_and_waits.first += std::get<cost::Kernel>(task.work).launches;
        launches_and_waits.second += task.synchronizations;
      }
    }
    return launches_and_waits;
  };
  int tensors = 0;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id)
    tensors += graph.tensors[id].role == model::Role::parameter && graph.gradient_of[id] >= 0;
  for (const bool flat : {false, true})
    CHECK(counted(zero(0, 4), flat) == std::pair(4 * tensors, 2 * tensors));
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    CHECK(counted(zero(1, n), false) == std::pair(4 * tensors, 2 * tensors));
    CHECK(counted(zero(1, n), true) == std::pair(4 * tensors / n, 2 * tensors / n));
    CHECK(counted(zero(2, n), true) == std::pair(4 * tensors / n, 2 * tensors / n));
    // ZeRO 3 divides every tensor by itself.
    CHECK(counted(zero(3, n), true) == std::pair(4 * tensors, 2 * tensors));
  }
}

TEST_CASE("gradients that are divided are reduced for every micro-batch, weights gathered too") {
  const model::Graph graph = even_gpt();
  const double share = 3.0 / 4;
  for (const int m : {1, 2, 5}) {
    CHECK(close(volume(graph, lowered(graph, zero(1, 4), m)), 2 * share, 1e-12));
    CHECK(close(volume(graph, lowered(graph, zero(2, 4), m)), (m + 1) * share, 1e-12));
    CHECK(close(volume(graph, lowered(graph, zero(3, 4), m)), 3 * m * share, 1e-12));
  }
}

TEST_CASE("groups that keep a copy each scatter within and sum shards across") {
  const model::Graph graph = even_gpt();
  const Program program = lowered(graph, R"({"data": 16, "zero": {"stage": 3, "ranks": 4}})");
  CHECK(per_parameter(graph, program) == 16.0 / 4);
  // Two gathers and a scatter among 4, and an all-reduce of a quarter among 4.
  CHECK(close(volume(graph, program), 3 * 0.75 + 2 * 0.75 / 4, 1e-12));
  const std::vector<Collective> sums =
      lowering::collectives(program, 0, Stream::gradient_communication);
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].kind == cost::CollectiveKind::reduce_scatter);
  CHECK(sums[1].kind == cost::CollectiveKind::all_reduce);
  CHECK(sums[1].payload == 0.25 * sums[0].payload);
  const auto members = [&](const Collective& work, int device) {
    return program.communicators[program.devices[device].groups[work.group]].ranks;
  };
  CHECK(members(sums[0], 5) == std::vector<int>{4, 5, 6, 7});
  CHECK(members(sums[1], 5) == std::vector<int>{1, 5, 9, 13});
}

// FSDP's SHARD_GRAD_OP: one gather for both passes of a micro-batch.
TEST_CASE("parameters that stay whole after the forward pass are gathered once a micro-batch") {
  const model::Graph graph = even_gpt();
  const double share = 3.0 / 4;
  for (const int m : {1, 2, 5}) {
    for (const std::string more : {"", R"(, "recompute": "full")"}) {
      INFO(m << more);
      const Program program = lowered(
          graph, R"({"data": 4, "zero": {"stage": 3, "reshard_after_forward": false})" + more + "}",
          m);
      CHECK(per_parameter(graph, program) == 16.0 / 4);
      CHECK(close(volume(graph, program), 2 * m * share, 1e-12));
    }
  }
}

// Wang et al., ZeRO++, arXiv:2306.10209, section 3.2 (hpZ): forward over all ranks, backward over
// those that keep a secondary copy together.
TEST_CASE("the backward pass gathers secondary parts from the ranks that hold a copy together") {
  const model::Graph graph = even_gpt();
  for (const int fewer : {2, 4, 8}) {
    for (const int m : {1, 3}) {
      INFO(fewer << " of 16, " << m);
      const Program program =
          lowered(graph,
                  R"({"data": 16, "zero": {"stage": 3, "reshard_after_forward": )" +
                      std::to_string(fewer) + "}}",
                  m);
      CHECK(per_parameter(graph, program) == 16.0 / 16);
      CHECK(close(volume(graph, program), m * (2 * 15.0 / 16 + (fewer - 1.0) / fewer), 1e-12));
      std::map<std::size_t, Bytes> gathered;  // by ranks
      for (const Call& call : program.sequences[0].calls) {
        for (const Task& task : program.blocks[call.block].tasks) {
          const Collective* work = lowering::collective_of(task);
          if (work != nullptr && work->kind == cost::CollectiveKind::all_gather)
            gathered[ranks_of(program, *work)] += work->payload;
        }
      }
      CHECK(gathered.size() == 2);
      CHECK(gathered[16] == gathered[fewer]);
    }
  }
}

// Megatron-FSDP shards optimizer states over the replicas of a hybrid sharding, too.
TEST_CASE("parameters and gradients may be divided over some of the ranks that divide steps") {
  const model::Graph graph = even_gpt();
  Plan plan = lowering::plan_of(graph, R"({"data": 8, "zero": {"stage": 3, "ranks": 2}})", 1);
  for (const bool gradients : {true, false}) {
    plan.steps.divided = {"data", "replica"};
    if (!gradients)
      plan.residency.keep({.what = Keep::What::parameters,
                           .between = Keep::Between::iterations,
                           .divided = {"data", "replica"}});
    const Program program = lower(plan, plain_stack());
    CHECK(per_parameter(graph, program) == (2 + 2) / 2.0 + 12.0 / 8);
    // Two gathers and a scatter in pairs; halves scattered and gathered among 4.
    CHECK(close(volume(graph, program), 3 * 0.5 + 2 * 0.75 / 2, 1e-12));
  }
}

TEST_CASE("a table that both ends of the model read is summed up before it is reduced once") {
  const model::Graph graph = model::gpt(small_gpt);  // tied
  const Program program = lowered(graph, zero(2, 2, R"(, "bucket": "1 B")"), 3);
  std::map<model::TensorId, int> reduced;
  for (const Call& call : program.sequences[0].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      if (task.stream != Stream::gradient_communication) continue;
      for (const int slot : task.reads) ++reduced[program.blocks[call.block].slots[slot].tensor];
    }
  }
  for (const auto& [gradient, times] : reduced) CHECK(times == 3);
  CHECK(reduced.size() == 12 * 4 + 4);
}

TEST_CASE("tensor ranks keep shards of what data ranks share, and of nothing else") {
  const model::Graph graph = even_gpt();
  const Program whole = lowered(graph, R"({"tensor": 2})");
  const Program shards = lowered(graph, R"({"tensor": 2, "data": 8, "zero": 3})");
  CHECK(resident(shards.sequences[0], Category::parameters) ==
        (1.0 / 8) * resident(whole.sequences[0], Category::parameters));
}

TEST_CASE("experts are divided over the ranks that share them, everything else over all") {
  model::GptConfig config = small_gpt;
  config.experts.count = 4;
  config.experts.per_token = 2;
  config.experts.every = 2;
  const model::Graph graph = model::gpt(config);
  const Program program = lowered(graph, R"({"data": 4, "expert": 2, "zero": 1})");
  double elements = 0;
  for (const model::Tensor& tensor : graph.tensors) {
    if (tensor.role != model::Role::parameter) continue;
    // Half of the experts here, and again half of them on either of two ranks: a quarter as well.
    elements += std::ceil(static_cast<double>(model::element_count(tensor)) / 4);
  }
  CHECK(resident(program.sequences[0], Category::optimizer_states).value == 12 * elements);
}

TEST_CASE("blocks of weights that are gathered are shared by equal layers and micro-batches") {
  const auto blocks = [](std::int64_t layers, int micro_batches) {
    model::GptConfig config = small_gpt;
    config.layers = layers;
    return lowered(model::gpt(config), zero(3, 2), micro_batches).blocks.size();
  };
  CHECK(blocks(20, 2) == blocks(8, 2));
  CHECK(blocks(8, 9) == blocks(8, 2));
}

TEST_CASE("a gradient that context ranks compute alike is reduced over the others alone") {
  // Trained keys and values in front of those of the tokens, which every query sees, alike on both
  // context ranks; nothing else is trained.
  model::GptConfig config = small_gpt;
  config.prefix = 6;
  const model::Graph graph = model::gpt(config);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const Program program =
        lowered(graph, R"({"data": 2, "context": 2, "zero": )" + std::to_string(stage) + "}", 2);
    double elements = 0;
    for (const model::Tensor& tensor : graph.tensors) {
      if (tensor.role != model::Role::parameter || !tensor.requires_grad) continue;
      elements += std::ceil(static_cast<double>(model::element_count(tensor)) / 4);
    }
    CHECK(elements == 4 * 2 * 48 * 6 / 4);
    CHECK(resident(program.sequences[0], Category::optimizer_states).value == 12 * elements);
  }
}

TEST_CASE("no more than two buckets of whole gradients are there at once") {
  // Every reduction is of one layer; the backward pass of a layer waits for the one but last.
  const model::Graph graph = even_gpt();
  const Program program = lowered(graph, zero(2, 4, R"(, "bucket": "1 B")"), 3);
  const program::Calls& calls = program.sequences[0].calls;
  std::vector<int> reductions;
  for (int c = 0; c < static_cast<int>(calls.size()); ++c) {
    const program::Block& block = program.blocks[calls[c].block];
    if (block.tasks.front().stream == Stream::gradient_communication) reductions.push_back(c);
    const bool adds = std::ranges::any_of(block.slots, [](const program::Slot& slot) {
      return slot.category == Category::whole_gradients;
    });
    if (!adds || calls[c].segment < 0 || reductions.size() < 2) continue;
    const int earlier = reductions[reductions.size() - 2];
    CHECK(std::ranges::any_of(calls[c].waits,
                              [&](const program::Wait& wait) { return wait.of_call == earlier; }));
  }
  CHECK(reductions.size() > 6);
}

/// Bytes of all parameters that the operators of a stage read.
Bytes parameters_of(const Plan& plan, int stage) {
  const model::Graph& graph = plan.graph();
  std::set<model::TensorId> read;
  for (const int segment : plan.stages[stage]) {
    for (const model::OpId op : graph.segments[segment].forward) {
      for (const model::TensorId tensor : graph.operators[op].inputs) {
        if (graph.tensors[tensor].role == model::Role::parameter) read.insert(tensor);
      }
    }
  }
  Bytes bytes;
  for (const model::TensorId tensor : read) bytes += model::bytes(graph.tensors[tensor]);
  return bytes;
}

TEST_CASE("a tied table on stages that share some devices is gathered on the grid of each") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.stages = {{0, 1}, {2, 3}, {4, 5}};
  const std::vector<int> first = {0, 2, 3};
  for (int stage = 0; stage < 3; ++stage) {
    for (const int segment : plan.stages[stage]) {
      for (const model::OpId op : graph.segments[segment].forward) {
        plan.assign(plan.trans(op, {.dim = "b", .parts = 2}), {"data", 2, 1});
        plan.assign(op, first[stage]);
      }
    }
  }
  plan.chain({{0, 0, CellPass::forward},
              {1, 0, CellPass::forward},
              {2, 0, CellPass::forward},
              {2, 0, CellPass::backward},
              {1, 0, CellPass::backward},
              {0, 0, CellPass::backward}});
  plan.steps.divided = {"data"};
  for (const bool between_passes : {false, true}) {
    if (between_passes) {
      plan.residency.keep({.what = Keep::What::gradients, .divided = {"data"}});
      plan.residency.keep({.what = Keep::What::parameters, .divided = {"data"}});
    }
    const Program program = lower(plan, plain_stack());
    // What is stepped in halves is gathered once, what is kept in halves for both passes.
    const int times = between_passes ? 2 : 1;
    for (int device = 0; device < 5; ++device) {
      std::map<std::vector<int>, Bytes> gathered, expected;
      for (const Call& call : program.sequences[program.devices[device].sequence].calls) {
        for (const Task& task : program.blocks[call.block].tasks) {
          const Collective* work = lowering::collective_of(task);
          if (work == nullptr || work->kind != cost::CollectiveKind::all_gather) continue;
          const int group = program.devices[device].groups[work->group];
          gathered[program.communicators[group].ranks] += work->payload;
        }
      }
      for (int stage = 0; stage < 3; ++stage) {
        if (device != first[stage] && device != first[stage] + 1) continue;
        expected[{first[stage], first[stage] + 1}] = times * parameters_of(plan, stage);
      }
      CHECK(gathered == expected);
    }
  }
  cost::Stack waits = plain_stack();
  waits.rules = {cost::ShardCollectives{.gathers_wait = true}};
  CHECK_NOTHROW(lower(plan, waits));
}

TEST_CASE("weights that are divided want a flush, and stages in equal parts") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return refusal([&] { lowered(graph, strategy, 4); });
  };
  CHECK_THAT(refused(R"({"data": 2, "zero": 1, "pipeline": 2, "schedule": "pipedream"})"),
             ContainsSubstring("a schedule with a flush"));
  CHECK_THAT(refused(R"({"data": 4, "zero": {"stage": 1, "ranks": 3}})"),
             StartsWith("test.json: /strategy/zero/ranks: expected a divisor of data, 4"));
  CHECK_THAT(refused(R"({"data": 4, "expert": 2, "zero": {"stage": 1, "ranks": 2}})"),
             StartsWith("test.json: /strategy/zero/ranks: expected experts on one rank"));
  const auto after = [](const std::string& ranks) {
    return R"({"data": 4, "zero": {"stage": 3, "reshard_after_forward": )" + ranks + "}}";
  };
  const std::string path = "test.json: /strategy/zero/reshard_after_forward: expected ";
  CHECK_THAT(refused(after("3")), StartsWith(path + "a divisor of data, 4"));
  CHECK_THAT(refused(after("4")), StartsWith(path + "true for all ranks"));
  CHECK_THAT(refused(R"({"data": 4, "zero": {"stage": 2, "reshard_after_forward": false}})"),
             StartsWith(path + "stage 3 beside it"));
  const std::string whole = R"("zero": {"stage": 3, "reshard_after_forward": false})";
  CHECK_THAT(refused(R"({"data": 2, "pipeline": 2, )" + whole + "}"),
             ContainsSubstring("micro-batches that follow one another on every device"));
  const std::string buffers = R"(, "gradient_buffers": 2})";
  CHECK_THAT(refused(R"({"zero": 2)" + buffers), ContainsSubstring("gradients that ranks divide"));
  CHECK_THAT(refused(R"({"offload": {"optimizer": "memory", "delayed_update": true})" + buffers),
             ContainsSubstring("steps that are not delayed"));
  Plan unlike(graph);
  unlike.residency.keep({.what = Keep::What::gradients, .divided = {"data"}});
  CHECK_THAT(refusal([&] { lower(unlike, plain_stack()); }),
             ContainsSubstring("axes of their steps, found steps that are not divided"));
  unlike.steps.divided = {"context"};
  CHECK_THAT(refusal([&] { lower(unlike, plain_stack()); }), ContainsSubstring("found other axes"));
  Plan plan(graph);
  plan.steps.divided = {"data"};
  for (const model::OpId op : plan.operators()) {
    plan.trans(op, {.dim = "b", .parts = 2});
    plan.assign(op, std::vector<int>{1, 0});
  }
  plan.chain({{0, 0, CellPass::forward}, {0, 0, CellPass::backward}});
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("stages on one grid in equal parts"));
}

}  // namespace stratagem::strategies::zero_test
