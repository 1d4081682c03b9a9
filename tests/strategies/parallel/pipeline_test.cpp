// Pipelines: what crosses the borders of stages, and what the first and the last stage share.
#include <array>
#include <set>

#include "model/zoo/evoformer.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::strategies {
Strategy pipeline();  // a row of the table
}

namespace stratagem::strategies::pipeline_test {

using lowering::collectives;
using lowering::lowered;
using lowering::refusal;
using lowering::small_gpt;
using placement::CellPass;
using program::Collective;
using program::Program;
using program::Stream;

namespace {

constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h in fp16

std::string pipeline(int stages, const std::string& more = "") {
  return "{\"pipeline\": " + std::to_string(stages) + more + "}";
}

/// Micro-batches of the transfers on one stream of a sequence, in order.
std::vector<int> transferred(const Program& program, int sequence, Stream stream) {
  std::vector<int> result;
  for (const program::Call& call : program.sequences[sequence].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      if (task.stream == stream) result.push_back(call.cell.micro_batch);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("each border is crossed once per micro-batch and direction by b*s*h") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    for (const int p : {2, 4}) {
      for (const int m : {1, 3, 6}) {
        INFO(schedule << ", p " << p << ", m " << m);
        const Program program =
            lowered(graph, pipeline(p, ", \"schedule\": \"" + schedule + "\""), m);
        std::vector<int> all;
        for (int i = 0; i < m; ++i) all.push_back(i);
        for (int stage = 0; stage < p; ++stage) {
          const auto expected = [&](bool crosses) { return crosses ? all : std::vector<int>{}; };
          CHECK(transferred(program, stage, Stream::send_forward) == expected(stage + 1 < p));
          CHECK(transferred(program, stage, Stream::receive_forward) == expected(stage > 0));
          CHECK(transferred(program, stage, Stream::send_backward) == expected(stage > 0));
          CHECK(transferred(program, stage, Stream::receive_backward) == expected(stage + 1 < p));
          for (const Stream stream : {Stream::send_forward, Stream::receive_forward,
                                      Stream::send_backward, Stream::receive_backward}) {
            for (const Collective& one : collectives(program, stage, stream)) {
              CHECK(one.kind == cost::CollectiveKind::send);
              CHECK(one.payload == activation);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a transfer goes to the device with the same place on the next stage") {
  // Stages of 2 tensor x 3 data ranks: device d sends to d + 6 and back.
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, pipeline(2, R"(, "tensor": 2, "data": 3)"), 2);
  for (int d = 0; d < 12; ++d) {
    const program::Device& device = program.devices[d];
    CHECK(device.sequence == d / 6);
    const auto ranks = [&](Stream stream) {
      std::set<std::vector<int>> result;
      for (const Collective& one : collectives(program, device.sequence, stream)) {
        CHECK(one.payload == activation / 3);
        const int communicator = device.groups[one.group];
        REQUIRE(communicator >= 0);
        result.insert(program.communicators[communicator].ranks);
      }
      return result;
    };
    const std::set<std::vector<int>> forward{{d % 6, d % 6 + 6}};
    const std::set<std::vector<int>> backward{{d % 6 + 6, d % 6}};
    CHECK(ranks(d < 6 ? Stream::send_forward : Stream::receive_forward) == forward);
    CHECK(ranks(d < 6 ? Stream::receive_backward : Stream::send_backward) == backward);
  }
}

TEST_CASE("stages stand where stage_order puts them") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto devices = [&](const std::string& more) {
    const Plan plan = lowering::plan_of(graph, R"({"pipeline": 4, "data": 2)" + more + "}", 4);
    std::vector<int> first;
    for (const std::vector<int>& stage : plan.stages) {
      const model::OpId op = graph.segments[stage.front()].forward.front();
      first.push_back(plan.placement(op).first_devices.front());
    }
    return first;
  };
  CHECK(devices("") == std::vector{0, 2, 4, 6});
  CHECK(devices(R"(, "stage_order": [0, 3, 1, 2])") == std::vector{0, 6, 2, 4});
  CHECK(devices(R"(, "rank_order": "tp-pp-dp", "stage_order": [0, 3, 1, 2])") ==
        std::vector{0, 3, 1, 2});
  CHECK(devices(R"(, "embedding": 1, "stage_order": [0, 3, 1, 2])") == std::vector{6, 0, 6, 2, 4});
  for (const std::string order : {"[0, 1, 2]", "[0, 1, 2, 2]", "[1, 2, 3, 4]"}) {
    CHECK_THAT(refusal([&] { devices(", \"stage_order\": " + order); }),
               StartsWith("test.json: /strategy/stage_order: expected each of 0 to 3 once"));
  }
}

TEST_CASE(
    "layers are divided evenly, and embeddings stand on the first stage, the head on the last") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(lowering::plan_of(graph, pipeline(2)).stages ==
        std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}});
  CHECK(lowering::plan_of(graph, pipeline(4)).stages ==
        std::vector<std::vector<int>>{{0, 1}, {2}, {3}, {4, 5}});
}

TEST_CASE("layers that do not divide are refused at /strategy/pipeline") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int p : {3, 5, 8}) {
    const std::string text = refusal([&] { lowered(graph, pipeline(p)); });
    CHECK_THAT(text, StartsWith("test.json: /strategy/pipeline: expected "));
    CHECK_THAT(text, ContainsSubstring("4 layers"));
  }
}

TEST_CASE("the first and the last stage sum the gradient of the token table that both hold") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {1, 2}) {
    for (const int p : {2, 4}) {
      INFO("tensor " << t << ", pipeline " << p);
      const Program program = lowered(graph, pipeline(p, ", \"tensor\": " + std::to_string(t)), 3);
      for (int stage = 0; stage < p; ++stage) {
        const std::vector<Collective> sums =
            collectives(program, stage, Stream::gradient_communication);
        if (stage > 0 && stage + 1 < p) {
          CHECK(sums.empty());
          continue;
        }
        REQUIRE(sums.size() == 1);
        CHECK(sums[0].kind == cost::CollectiveKind::all_reduce);
        CHECK(sums[0].payload == 112.0 * 48 / t * 2_B);
        for (int rank = 0; rank < t; ++rank) {
          const int communicator = program.devices[stage * t + rank].groups[sums[0].group];
          REQUIRE(communicator >= 0);
          CHECK(program.communicators[communicator].ranks ==
                std::vector<int>{rank, (p - 1) * t + rank});
        }
      }
    }
  }
}

TEST_CASE(
    "each stage sums its own gradients over its data ranks, the tied table on both of its stages") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, pipeline(4, R"(, "data": 3, "overlap_gradients": true)"), 3);
  for (int stage = 0; stage < 4; ++stage) {
    Bytes over_data;
    for (const Collective& one : collectives(program, stage, Stream::gradient_communication)) {
      const int communicator = program.devices[stage * 3].groups[one.group];
      REQUIRE(communicator >= 0);
      if (program.communicators[communicator].ranks.size() == 3) over_data += one.payload;
    }
    CHECK(over_data == lowering::resident(program.sequences[stage], program::Category::gradients));
  }
}

TEST_CASE("the parameters of all stages are the model's, and the token table once more") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, pipeline(4));
  Bytes total;
  for (const program::Sequence& sequence : program.sequences)
    total += lowering::resident(sequence, program::Category::parameters);
  CHECK(total == (static_cast<double>(model::gpt_parameters(small_gpt)) + 112.0 * 48) * 2_B);
}

TEST_CASE("what is recycled and read by the head as well is sent on after the head has read it") {
  // lower() checks that every buffer is alive when it is sent.
  const model::Graph graph =
      model::evoformer({.layers = 4, .msa_rows = 8, .residues = 16, .passes = 3, .batch = 2});
  for (const int p : {1, 2, 4}) {
    for (const char* more : {"", R"(, "recompute": "full")", R"(, "dap": 2)"}) {
      INFO(p << more);
      const Program program =
          lowered(graph, pipeline(p, std::string(R"(, "schedule": "3f1b")") + more), 3);
      Bytes sent;
      for (const program::Device& device : program.devices) {
        for (const Stream stream : {Stream::send_forward, Stream::send_backward}) {
          for (const Collective& one : collectives(program, device.sequence, stream))
            sent += one.payload;
        }
      }
      // Of 3 micro-batches both tensors cross each border in three passes and their gradients in
      // one; the pairs go back to the first stage before the second and the third pass.
      const Bytes msa = 2.0 * 8 * 16 * 256 * 2_B, pairs = 2.0 * 16 * 16 * 128 * 2_B;
      CHECK(sent == (p == 1 ? 0 : 3) * ((p - 1) * (3 + 1) * (msa + pairs) + 2 * pairs));
    }
  }
}

TEST_CASE("ends apart and shared devices are for one forward pass") {
  const model::Graph graph =
      model::evoformer({.layers = 4, .msa_rows = 8, .residues = 16, .passes = 3, .batch = 2});
  for (const char* more :
       {R"(, "embedding": 0)", R"(, "head": "all")", R"(, "ranks_per_device": 2)"}) {
    const std::string options = pipeline(4, std::string(R"(, "schedule": "3f1b")") + more);
    CHECK_THAT(
        refusal([&] { lowered(graph, options, 3); }),
        StartsWith("test.json: /strategy/schedule: ") && ContainsSubstring("one forward pass"));
  }
}

TEST_CASE("a stage that takes micro-batches in another order than they come is refused") {
  // An Evoformer's border has two tensors; the second stage takes the micro-batches in either
  // order.
  const model::Graph graph =
      model::evoformer({.layers = 2, .msa_rows = 8, .residues = 16, .batch = 2});
  const auto refused = [&](int first, int second) {
    Plan plan(graph);
    plan.micro_batches = 2;
    strategies::pipeline().apply(plan, Options{.pipeline = 2});
    for (const auto& [stage, one, other] : {std::array{0, 0, 1}, std::array{1, first, second}})
      plan.chain({{stage, one, CellPass::forward},
                  {stage, other, CellPass::forward},
                  {stage, 0, CellPass::backward},
                  {stage, 1, CellPass::backward}});
    return refusal([&] { lowering::lower(plan, lowering::plain_stack()); });
  };
  CHECK(refused(0, 1) == "");
  CHECK_THAT(refused(1, 0),
             ContainsSubstring("an op-order with F(stage 1, micro-batch 0) before F(stage 1, "
                               "micro-batch 1)") &&
                 ContainsSubstring("device 1 runs F(stage 1, micro-batch 1) before"));
}

TEST_CASE("a head on one rank takes from the copy that stands there and from the other") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int rank : {0, 1}) {
    INFO(rank);
    const Program program = lowered(
        graph, pipeline(2, R"(, "schedule": "chimera", "head": )" + std::to_string(rank)), 4);
    // Two of four micro-batches end on each rank; the head of all four runs on one.
    for (int device = 0; device < 2; ++device) {
      const auto heads =
          std::ranges::count_if(program.sequences[device].calls, [](const program::Call& c) {
            return c.segment == 5 && c.cell.pass == CellPass::forward;
          });
      CHECK(heads == (device == rank ? 4 : 0));
    }
    const int other = 1 - rank;
    Bytes sent;
    for (const Collective& one : collectives(program, other, Stream::send_forward))
      sent += one.payload;
    // To the next stage those of two micro-batches, to the head those of the other two.
    CHECK(sent == 4 * activation);
  }
}

TEST_CASE("a plan without a flush wants one stage on every device") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.stages = {{0, 1, 2}, {3, 4, 5}};
  plan.updates.flush = false;
  CHECK_THAT(refusal([&] { lowering::lower(plan, lowering::plain_stack()); }),
             ContainsSubstring("one stage on every device of a plan without a flush"));
}

}  // namespace stratagem::strategies::pipeline_test
