// Rolling changes how calls are stored, never what they are.
#include "lowering/sequences/roll.hpp"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::lowering::roll_test {

using program::Calls;
using program::Loop;
using program::Program;
using program::Sequence;
using program::StoredCall;

namespace {

/// Calls of some blocks for consecutive micro-batches. Each waits for the one `before` before it,
/// and so does its host, which also waits for all launched.
Sequence sequence_of(const std::vector<std::pair<int, int>>& blocks_and_micro_batches,
                     int before = 0) {
  std::vector<StoredCall> calls;
  for (const auto& [block, micro_batch] : blocks_and_micro_batches) {
    calls.push_back({.block = block, .cell = {.micro_batch = micro_batch}});
    const int number = static_cast<int>(calls.size()) - 1;
    if (before == 0) continue;
    calls.back().host_waits = {{}};
    if (number < before) continue;
    calls.back().waits = {{0, number - before, 0}};
    calls.back().host_waits.push_back({0, number - before, 0});
  }
  return {.calls = {std::move(calls)}};
}

bool same(const Sequence& a, const Sequence& b) {
  return a.calls.stored() == b.calls.stored() && a.calls.loops() == b.calls.loops() &&
         a.launches == b.launches;
}

std::size_t stored(const Sequence& sequence) { return sequence.calls.stored().size(); }

}  // namespace

TEST_CASE("what repeats is a loop from its first call on") {
  const Sequence one = roll(sequence_of({{7, 0}, {0, 0}, {1, 3}, {0, 1}, {1, 4}, {0, 2}, {1, 5}}));
  CHECK(one.calls.loops() == std::vector<Loop>{{.first = 1, .calls = 2, .turns = 3, .step = 1}});
  CHECK(stored(one) == 3);
  // Blocks 0 1 0 1 0 1 for micro-batches 0 0 1 2 2 4: no step is the same for both.
  CHECK(roll(sequence_of({{0, 0}, {1, 0}, {0, 1}, {1, 2}, {0, 2}, {1, 4}})).calls.loops().empty());
  // 0 0 1 three times saves more than 0 twice.
  const Sequence nested =
      roll(sequence_of({{0, 0}, {0, 1}, {1, 0}, {0, 2}, {0, 3}, {1, 2}, {0, 4}, {0, 5}, {1, 4}}));
  CHECK(nested.calls.loops() == std::vector<Loop>{{.first = 0, .calls = 3, .turns = 3, .step = 2}});
}

TEST_CASE("calls that wait for calls at other distances are not of one loop") {
  // The first two wait for nothing.
  const Sequence waiting = roll(sequence_of({{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}}, 2));
  CHECK(waiting.calls.loops() ==
        std::vector<Loop>{{.first = 0, .calls = 1, .turns = 2, .step = 1},
                          {.first = 1, .calls = 1, .turns = 3, .step = 1}});
}

TEST_CASE("a loop does not part calls whose launches alternate") {
  // Two pairs that alternate and a call between a pair and half of a third one.
  Sequence sequence = sequence_of({{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}});
  const auto pair = [](int first) {
    return std::vector<program::Launch>{
        {first, 0, 1}, {first + 1, 0, 1}, {first, 1, 2}, {first + 1, 1, 2}};
  };
  for (const int first : {0, 2, 4}) {
    for (const program::Launch& launch : pair(first)) sequence.launches.push_back(launch);
  }
  const Sequence rolled = roll(sequence);
  CHECK(rolled.calls.loops() == std::vector<Loop>{{.first = 0, .calls = 2, .turns = 3, .step = 2}});
  CHECK(rolled.launches == pair(0));
  CHECK(program::unrolled(rolled).launches == sequence.launches);
}

TEST_CASE("rolling and unrolling gives any sequence back") {
  std::mt19937 engine(24);
  const auto pick = [&](int most) { return std::uniform_int_distribution(0, most)(engine); };
  for (int round = 0; round < 300; ++round) {
    INFO(round);
    std::vector<std::pair<int, int>> calls;
    for (int part = pick(4); part >= 0; --part) {
      std::vector<std::pair<int, int>> body;
      for (int c = pick(3); c >= 0; --c) body.emplace_back(pick(2), pick(5));
      const int step = pick(2);
      for (int turn = pick(6); turn >= 0; --turn) {
        for (const auto& [block, micro_batch] : body)
          calls.emplace_back(block, micro_batch + turn * step);
      }
    }
    const Sequence sequence = sequence_of(calls, pick(4));
    CHECK(same(program::unrolled(roll(sequence)), sequence));
  }
  for (const Variant& variant : variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    const Program program = lowered(model::gpt(small_gpt), variant.strategy, variant.micro_batches);
    for (const Sequence& rolled : program.sequences) {
      const Sequence spelled_out = program::unrolled(rolled);
      CHECK(same(roll(spelled_out), rolled));
      CHECK(same(program::unrolled(roll(spelled_out)), spelled_out));
    }
  }
}

TEST_CASE("micro-batches of 1F1B store nothing beyond the first of them") {
  // Stage s of p begins with p - 1 - s forward cells; then one goes with each backward cell. So it
  // is F, BF and B in a loop each, or FB alone on the last stage.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int stages : {2, 4}) {
    for (const int micro_batches : {2 * stages, 40}) {
      INFO(stages << " stages, " << micro_batches << " micro-batches");
      const Program program =
          lowered(graph, "{\"pipeline\": " + std::to_string(stages) + ", \"schedule\": \"1f1b\"}",
                  micro_batches);
      REQUIRE(static_cast<int>(program.sequences.size()) == stages);
      for (int stage = 0; stage < stages; ++stage) {
        const Calls& calls = program.sequences[program.devices[stage].sequence].calls;
        std::size_t of_one = 0;  // micro-batch
        for (const program::Call& call : calls) of_one += call.cell.micro_batch == 0 ? 1 : 0;
        const std::size_t at_the_end = calls.size() - micro_batches * of_one;
        CHECK(calls.stored().size() == (stage + 1 < stages ? 2 : 1) * of_one + at_the_end);
      }
    }
  }
}

TEST_CASE("no schedule stores more calls for more micro-batches, once it is under way") {
  model::GptConfig config = small_gpt;
  config.layers = 8;
  for (const strategies::Schedule& schedule : strategies::schedules()) {
    INFO(schedule.name);
    model::Graph graph = model::gpt(config);
    if (schedule.name == "3f1b") graph.forward_repeats = 3;
    const std::string strategy = R"({"pipeline": 2, "schedule": ")" + schedule.name + "\"}";
    const Program few = lowered(graph, strategy, 24), many = lowered(graph, strategy, 48);
    for (std::size_t s = 0; s < few.sequences.size(); ++s) {
      CHECK(stored(few.sequences[s]) == stored(many.sequences[s]));
      CHECK(few.sequences[s].calls.size() < many.sequences[s].calls.size());
    }
  }
}

}  // namespace stratagem::lowering::roll_test
