// Swapped activations: what leaves comes back, and nothing else.
#include <map>
#include <numeric>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/replay.hpp"
#include "tests/lowering/small_evoformer.hpp"

namespace stratagem::strategies::swap_test {

using lowering::left_by;
using lowering::lowered;
using lowering::refusal;
using lowering::small_gpt;
using placement::CellPass;
using program::Call;
using program::Category;
using program::Program;
using program::Stream;
using strategies::Keep;

namespace {

/// Every buffer is freed.
void check_all_freed(const Program& program) {
  for (std::size_t s = 0; s < program.sequences.size(); ++s)
    CHECK(lowering::Replay(program, static_cast<int>(s)).alive().empty());
}

/// By segment: bytes of all copies of one kind.
std::map<int, Bytes> copies(const Program& program, cost::CollectiveKind kind) {
  std::map<int, Bytes> result;
  for (const Call& call : program.sequences[0].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      const program::Collective* work = lowering::collective_of(task);
      if (work != nullptr && work->kind == kind) result[call.segment] += work->payload;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("what the first layers keep leaves and comes back, every micro-batch") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string more : {"", R"(, "recompute": "full")", R"(, "recompute": "selective")"}) {
    INFO(more);
    const Program program = lowered(graph, "{\"swap\": 3" + more + "}", 2);
    const std::map<int, Bytes> out = copies(program, cost::CollectiveKind::to_host);
    CHECK(out == copies(program, cost::CollectiveKind::from_host));
    REQUIRE(out.size() == 3);
    // A layer in the middle keeps as much as its forward pass leaves behind: its input is the
    // output of the layer before.
    const program::Block& block = lowering::block_of(program, 2, CellPass::forward);
    const Bytes kept = left_by(block, Category::activations) +
                       left_by(block, Category::checkpoints) + left_by(block, Category::statistics);
    CHECK(out.at(2) == 2 * kept);
  }
}

TEST_CASE("of a layer that is recomputed only its input leaves") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"swap": 4, "recompute": "full"})");
  const auto bytes =
      static_cast<double>(2 * small_gpt.batch * small_gpt.sequence * small_gpt.hidden);
  for (const auto& [segment, out] : copies(program, cost::CollectiveKind::to_host))
    CHECK(out.value == bytes);
}

TEST_CASE("a copy out follows its forward pass, a copy in precedes its backward pass") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"swap": {"layers": 4, "prefetch": 1}})", 2);
  const program::Calls& calls = program.sequences[0].calls;
  int copies = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Stream stream = program.blocks[calls[c].block].tasks.front().stream;
    if (stream != Stream::copy_out && stream != Stream::copy_in) continue;
    ++copies;
    const bool out = stream == Stream::copy_out;
    CHECK(calls[c].cell.pass == (out ? CellPass::forward : CellPass::backward));
    const auto waits_for = [&](std::size_t later, std::size_t earlier) {
      return std::ranges::any_of(calls[later].waits, [&](const program::Wait& wait) {
        return wait.of_call == static_cast<int>(earlier);
      });
    };
    bool found = false;
    for (std::size_t other = 0; other < calls.size(); ++other) {
      if (other == c || lowering::ends_iteration(program, calls[other]) ||
          calls[other].segment != calls[c].segment || calls[other].cell != calls[c].cell)
        continue;
      found = true;
      CHECK((out ? waits_for(c, other) : waits_for(other, c)));
    }
    CHECK(found);
  }
  CHECK(copies == 2 * 2 * 4);
}

TEST_CASE("repeats that do not train leave nothing, and W has back what B has no use for") {
  model::EvoformerConfig config = lowering::small_evoformer;
  config.layers = 2;
  const model::Graph once = model::evoformer(config);
  Plan plan = lowering::plan_of(once, R"({"pipeline": 2, "schedule": "zb-h1"})", 4);
  std::vector<int> all(once.segments.size());
  std::iota(all.begin(), all.end(), 0);
  plan.residency.keep(
      {.what = Keep::What::activations, .segments = all, .where = Keep::Where::host});
  check_all_freed(lowering::lower(plan, lowering::plain_stack()));
  config.passes = 3;
  const model::Graph thrice = model::evoformer(config);
  const Program program = lowered(thrice, R"({"schedule": "3f1b", "swap": 2})", 4);
  check_all_freed(program);
  CHECK(copies(program, cost::CollectiveKind::to_host) ==
        copies(program, cost::CollectiveKind::from_host));
}

TEST_CASE("what a stage lends another takes in, and gives back before the backward pass") {
  const model::Graph graph = model::gpt(small_gpt);
  const int micro_batches = 5;
  const Program plain = lowered(graph, R"({"pipeline": 4})", micro_batches);
  const Program program =
      lowered(graph, R"({"pipeline": 4, "swap": {"layers": 2, "to": "peer"}})", micro_batches);
  check_all_freed(program);
  // Layer i is stage i; its checkpoint came with it. By rank: bytes lent, and taken in.
  std::map<int, Bytes> lent;
  std::map<int, Bytes> taken;
  for (int rank = 0; rank < 4; ++rank) {
    for (const Call& call : program.sequences[program.devices[rank].sequence].calls) {
      const program::Task& task = program.blocks[call.block].tasks.front();
      if (!task.name.starts_with("lend ")) continue;
      const program::Collective& work = *lowering::collective_of(task);
      const int group = program.devices[rank].groups[work.group];
      CHECK(program.communicators[group].ranks ==
            (call.segment >= 0 ? std::vector{rank, 3 - rank} : std::vector{3 - rank, rank}));
      (task.stream == Stream::send_forward ? lent : taken)[rank] += work.payload;
    }
  }
  const double sbh = 20.0 * 12 * 48;
  const Bytes layer{sbh * (34 + 5.0 * 8 * 20 / 48) + 4 * 4 * 20 * 12};  // with statistics
  const Bytes all = static_cast<double>(micro_batches) * layer;
  CHECK(lent == std::map<int, Bytes>{{0, all}, {1, all}});
  CHECK(taken == std::map<int, Bytes>{{3, all}, {2, all}});
  CHECK(hardware_flops(program) == hardware_flops(plain));
}

TEST_CASE("split backward cells, repeats, copies and ends apart have back what they lent") {
  const model::Graph graph = model::gpt(small_gpt);
  model::GptConfig config = small_gpt;
  config.tied = false;
  const model::Graph untied = model::gpt(config);
  model::Graph thrice = model::gpt(config);
  thrice.forward_repeats = 3;
  const std::string to_peer = R"({"swap": {"layers": 2, "to": "peer"}, "pipeline": 2)";
  check_all_freed(
      lowered(graph, to_peer + R"(, "schedule": "zb-h1", "recompute": "selective"})", 4));
  check_all_freed(
      lowered(graph, to_peer + R"(, "schedule": "zb-h2", "recompute": {"every": 2}})", 4));
  check_all_freed(lowered(graph, to_peer + R"(, "replicas_per_stage": [2, 1]})", 4));
  check_all_freed(lowered(graph, to_peer + R"(, "schedule": "chimera", "tensor": 2})", 4));
  check_all_freed(lowered(untied, to_peer + R"(, "embedding": "all", "head": "all"})", 4));
  check_all_freed(lowered(thrice, to_peer + R"(, "schedule": "3f1b"})", 4));
}

TEST_CASE("a stage has a peer on other devices, on an equal grid") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& more) {
    return refusal(
        [&] { lowered(graph, R"({"swap": {"layers": 2, "to": "peer"})" + more + "}", 4); });
  };
  CHECK(refused(R"(, "pipeline": 2)").empty());
  CHECK(refused(R"(, "pipeline": 2, "schedule": "zb-v")").empty());
  for (const std::string more : {"", R"(, "pipeline": 2, "ranks_per_device": 2)"}) {
    CHECK_THAT(refused(more),
               ContainsSubstring("/strategy/swap/to: expected a stage of as many other devices"));
  }
  CHECK_THAT(refused(R"(, "pipeline": 4, "schedule": "bpipe")"),
             ContainsSubstring("none lent to other stages"));
  CHECK_THAT(refusal([&] {
               lowered(graph, R"({"pipeline": 4, "schedule": "bpipe", "token_slices": [12, 8]})",
                       8);
             }),
             ContainsSubstring("/strategy/schedule: expected whole micro-batches"));
  Plan plan = lowering::plan_of(graph, R"({"pipeline": 2})", 4);
  plan.residency.keep({.what = Keep::What::activations,
                       .segments = {1},
                       .where = Keep::Where::stage,
                       .stage = 0,  // its own
                       .said = "/primitives/2"});
  CHECK_THAT(refusal([&] { lowering::lower(plan, lowering::plain_stack()); }),
             ContainsSubstring("/primitives/2: expected stages on equal grids of other devices"));
  CHECK_THAT(refusal([&] {
               lowered(graph, R"({"pipeline": 2, "swap": {"layers": 2, "to": "peers"}})", 4);
             }),
             StartsWith("test.json: /strategy/swap/to: expected"));
}

TEST_CASE("what is swapped is whole, and stays on its own devices until then") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return refusal([&] { lowered(graph, strategy, 4); });
  };
  CHECK_THAT(refused(R"({"swap": 2, "token_slices": [12, 8]})"),
             ContainsSubstring("whole micro-batches"));
  for (const std::string schedule : {"pipedream", "pipedream-vertical", "pipedream-2bw"}) {
    CHECK_THAT(refused(R"({"swap": 2, "pipeline": 2, "schedule": ")" + schedule + "\"}"),
               ContainsSubstring("/strategy/swap: expected a schedule with a flush"));
  }
  CHECK_THAT(refused(R"({"swap": 5})"),
             StartsWith("test.json: /strategy/swap: expected at most the model's 4 layers"));
  CHECK_THAT(refused(R"({"swap": 2, "pipeline": 4, "schedule": "bpipe"})"),
             ContainsSubstring("none lent to other stages"));
}

}  // namespace stratagem::strategies::swap_test
