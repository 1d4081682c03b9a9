// Swapped activations: what leaves comes back, and nothing else.
#include <map>

#include "tests/catch.hpp"
#include "tests/strategies/lowered.hpp"
#include "tests/strategies/replay.hpp"
#include "tests/strategies/small_evoformer.hpp"

namespace stratagem::strategies {
namespace {

/// Every buffer dies.
void check_deaths(const Program& program) {
  for (std::size_t s = 0; s < program.sequences.size(); ++s)
    CHECK(Replay(program, static_cast<int>(s)).alive().empty());
}

/// By segment: bytes of all copies of one kind.
std::map<int, Bytes> copies(const Program& program, cost::CollectiveKind kind) {
  std::map<int, Bytes> result;
  for (const Call& call : program.sequences[0].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      const Collective* work = collective_of(task);
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
    const Block& block = block_of(program, 2, CellPass::forward);
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
  const std::vector<Call>& calls = program.sequences[0].calls;
  int copies = 0;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Stream stream = program.blocks[calls[c].block].tasks.front().stream;
    if (stream != Stream::copy_out && stream != Stream::copy_in) continue;
    ++copies;
    const bool out = stream == Stream::copy_out;
    CHECK(calls[c].cell.pass == (out ? CellPass::forward : CellPass::backward));
    const auto waits_for = [&](std::size_t later, std::size_t earlier) {
      return std::ranges::any_of(calls[later].waits, [&](const Wait& wait) {
        return wait.of_call == static_cast<int>(earlier);
      });
    };
    bool found = false;
    for (std::size_t other = 0; other < calls.size(); ++other) {
      if (other == c || ends_iteration(program, calls[other]) ||
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
  model::EvoformerConfig config = small_evoformer;
  config.layers = 2;
  const model::Graph once = model::evoformer(config);
  Plan plan = plan_of(once, R"({"pipeline": 2, "schedule": "zb-h1"})", 4);
  for (int segment = 0; segment < static_cast<int>(once.segments.size()); ++segment)
    plan.swap.segments.push_back(segment);
  check_deaths(lower(plan, plain_stack()));
  config.passes = 3;
  const model::Graph thrice = model::evoformer(config);
  const Program program = lowered(thrice, R"({"schedule": "3f1b", "swap": 2})", 4);
  check_deaths(program);
  CHECK(copies(program, cost::CollectiveKind::to_host) ==
        copies(program, cost::CollectiveKind::from_host));
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

}  // namespace stratagem::strategies
