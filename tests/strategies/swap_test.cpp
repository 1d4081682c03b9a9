// Swapped activations: what leaves comes back, and nothing else.
#include <map>

#include "tests/catch.hpp"
#include "tests/strategies/lowered.hpp"

namespace stratagem::strategies {
namespace {

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

TEST_CASE("what is swapped is whole, and stays on its own devices until then") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return refusal([&] { lowered(graph, strategy, 4); });
  };
  CHECK_THAT(refused(R"({"swap": 2, "token_slices": [12, 8]})"),
             ContainsSubstring("whole micro-batches"));
  CHECK_THAT(refused(R"({"swap": 2, "pipeline": 4, "schedule": "bpipe"})"),
             ContainsSubstring("none lent to other stages"));
}

}  // namespace stratagem::strategies
