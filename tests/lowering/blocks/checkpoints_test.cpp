// Checkpoints that tensor ranks share: ZeRO-R's P_a and P_a+cpu.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/replay.hpp"

namespace stratagem::lowering::checkpoints_test {

using placement::CellPass;
using program::Block;
using program::Collective;
using program::Program;

namespace {

constexpr double sbh = 20.0 * 12 * 48;

std::string strategy(int tensor, bool divided, const std::string& more = "") {
  return R"({"recompute": "full", "tensor": )" + std::to_string(tensor) +
         (divided ? R"(, "partition_checkpoints": true)" : "") + more + "}";
}

double payload(const Program& program, cost::CollectiveKind kind) {
  double sum = 0;
  for (const program::Call& call : program.sequences[0].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      const Collective* work = collective_of(task);
      if (work != nullptr && work->kind == kind) sum += work->payload.value;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("of every checkpoint a rank keeps 2sbh/t bytes, and gathers it once") {
  // Rajbhandari et al., ZeRO, SC 2020, sections 6.1 and 8: bsh elements more for every block.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {2, 4, 8}) {
    INFO(t);
    const Program whole = lowered(graph, strategy(t, false));
    const Program divided = lowered(graph, strategy(t, true));
    for (int segment = 1; segment <= 4; ++segment) {
      const Block& forward = block_of(divided, segment, CellPass::forward);
      // The next layer's input, whole until that layer has run, for its own.
      const double next = segment < 4 ? 2 * sbh : 0;
      CHECK(left_by(forward, program::Category::checkpoints) ==
            Bytes{next - 2 * sbh + 2 * sbh / t});
      const Block& backward = block_of(divided, segment, CellPass::backward);
      CHECK(left_by(backward, program::Category::checkpoints) == Bytes{-2 * sbh / t});
      const std::vector<Collective> all = collectives(backward);
      REQUIRE_FALSE(all.empty());
      CHECK(all.front().kind == cost::CollectiveKind::all_gather);
      CHECK(all.front().payload == Bytes{2 * sbh});
      // It gathers before anything runs again.
      CHECK(backward.tasks.front().stream == program::Stream::communication);
      CHECK(all.size() == collectives(block_of(whole, segment, CellPass::backward)).size() + 1);
    }
    const auto gathers = cost::CollectiveKind::all_gather;
    CHECK(payload(divided, gathers) == payload(whole, gathers) + 4 * 2 * sbh);
    const auto reductions = cost::CollectiveKind::all_reduce;
    CHECK(payload(divided, reductions) == payload(whole, reductions));
    CHECK(hardware_flops(divided) == hardware_flops(whole));
  }
}

TEST_CASE("with six all-reduces a layer the gather adds less than a tenth") {
  // ZeRO, section 8: Megatron-LM moves 12bsh elements a block, P_a bsh more.
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, strategy(4, true));
  const Block& forward = block_of(program, 2, CellPass::forward);
  const Block& backward = block_of(program, 2, CellPass::backward);
  double reduced = 0;
  double gathered = 0;
  for (const Block* block : {&forward, &backward}) {
    for (const Collective& one : collectives(*block)) {
      const bool sums = one.kind == cost::CollectiveKind::all_reduce;
      (sums ? reduced : gathered) += one.payload.value;
    }
  }
  const double bytes = 2;  // of an element, which an all-reduce moves twice
  CHECK(2 * reduced / bytes == 12 * sbh);
  CHECK(gathered / bytes == sbh);
}

TEST_CASE("divided checkpoints on the host: 2 x 2sbh/t bytes a layer over PCIe") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {1, 2, 8}) {
    const Program program = lowered(graph, strategy(t, true, R"(, "swap": 4)"));
    CHECK(payload(program, cost::CollectiveKind::to_host) == 4 * 2 * sbh / t);
    CHECK(payload(program, cost::CollectiveKind::from_host) == 4 * 2 * sbh / t);
  }
}

TEST_CASE("checkpoints that are divided already stay as they are") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string sequence = R"(, "sequence_parallel": true)";
  CHECK(to_text(lowered(graph, strategy(4, true, sequence))) ==
        to_text(lowered(graph, strategy(4, false, sequence))));
  CHECK(to_text(lowered(graph, strategy(1, true))) == to_text(lowered(graph, strategy(1, false))));
  // Queries, keys and values are divided by heads.
  const std::string selective = R"({"recompute": "selective", "tensor": 4)";
  CHECK(to_text(lowered(graph, selective + R"(, "partition_checkpoints": true})")) ==
        to_text(lowered(graph, selective + "}")));
}

TEST_CASE("a group of layers gathers its checkpoint once") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto words = [](bool divided) {
    return std::string(R"({"recompute": {"every": 2}, "tensor": 4)") +
           (divided ? R"(, "partition_checkpoints": true})" : "}");
  };
  const auto gathers = cost::CollectiveKind::all_gather;
  CHECK(payload(lowered(graph, words(true)), gathers) ==
        payload(lowered(graph, words(false)), gathers) + 2 * 2 * sbh);
}

TEST_CASE("B and W of a split backward cell both have the checkpoint that they read") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string recompute :
       {R"("full")", R"({"every": 2})", R"({"operators": ["*.mlp.*"]})"}) {
    INFO(recompute);
    const Program program = lowered(graph, R"({"recompute": )" + recompute + R"(, "tensor": 2,
        "partition_checkpoints": true, "pipeline": 2, "schedule": "zb-h1"})",
                                    4);
    for (std::size_t s = 0; s < program.sequences.size(); ++s)
      CHECK(Replay(program, static_cast<int>(s)).alive().empty());
  }
}

TEST_CASE("checkpoints that do not divide, or that lie on no grid, are refused") {
  const model::Graph graph = model::gpt(small_gpt);
  strategies::Plan plan(graph);  // seven replicas of 12 x 20 x 48
  for (const model::OpId op : plan.operators())
    plan.assign(plan.trans(op, {.dim = "", .parts = 7}), {.name = "replicas", .size = 7});
  plan.recompute(graph.segments[2].forward);
  plan.residency.keep({.what = strategies::Keep::What::checkpoints, .divided = {"replicas"}});
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("that divides by 7, the ranks of replicas"));
  strategies::Plan without(graph);
  without.residency.keep({.what = strategies::Keep::What::checkpoints, .divided = {"replicas"}});
  CHECK_THAT(refusal([&] { lower(without, plain_stack()); }),
             ContainsSubstring("something that is recomputed"));
  CHECK(refusal([&] {
          lowered(graph, R"({"swap": 1, "recompute": "full", "cpu_checkpointing": true})", 2);
        }).empty());
  plan = with_lists(plan_of(graph, strategy(2, true)));
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }), ContainsSubstring("stages on one grid"));
}

}  // namespace stratagem::lowering::checkpoints_test
