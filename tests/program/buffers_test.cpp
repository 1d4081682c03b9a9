// Buffers of small programs, with births and deaths counted by hand, and what holds for all buffers
// of whatever is lowered.
#include "program/buffers.hpp"

#include <tuple>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::program::buffers_test {
namespace {

using placement::Cell;
using placement::CellPass;
using Numbers = std::vector<int>;

constexpr CellPass forward = CellPass::forward;
constexpr CellPass backward = CellPass::backward;

/// Block 0, "forward": task 0 writes x and y, task 1 frees y, and x stays. Block 1, "backward",
/// has x in its slot 1: task 0 reads it, task 1 frees it; slot 0 is a parameter.
Program two_passes(const std::vector<StoredCall>& calls) {
  Task makes{.writes = {0, 1}, .allocates = {0, 1}};
  Task uses{.reads = {1}, .frees = {1}};
  Task reads{.reads = {0, 1}};
  Task frees{.frees = {1}};
  Program program;
  program.blocks = {
      {.name = "forward",
       .slots = {{.name = "x", .tensor = 0, .bytes = 8_B, .category = Category::activations},
                 {.name = "y", .tensor = 1, .bytes = 2_B}},
       .tasks = {makes, uses}},
      {.name = "backward",
       .slots = {{.name = "w", .tensor = 2, .bytes = 4_B, .category = Category::parameters},
                 {.name = "x", .tensor = 0, .bytes = 8_B, .category = Category::activations}},
       .tasks = {reads, frees}}};
  program.sequences = {{.calls = calls, .residents = {}}};
  for (const StoredCall& call : calls) program.lag = std::max(program.lag, call.lag);
  return program;
}

StoredCall call_of(int block, const Cell& cell, int lag = 0) {
  return {.block = block, .cell = cell, .lag = lag};
}

Buffers buffers_of(const Program& program) { return {program, program.sequences[0]}; }

}  // namespace

TEST_CASE("what a call leaves is there for the calls of the same micro-batch") {
  const Program program = two_passes({call_of(0, {0, 0, forward}), call_of(0, {0, 1, forward}),
                                      call_of(1, {0, 1, backward}), call_of(1, {0, 0, backward})});
  const Buffers buffers = buffers_of(program);
  REQUIRE(buffers.count() == 4);  // x and y of both
  CHECK(buffers.of(0, 0) == 0);
  CHECK(buffers.of(0, 1) == 1);
  CHECK(buffers.of(1, 0) == 2);
  CHECK(buffers.of(1, 1) == 3);
  CHECK(buffers.of(2, 1) == 2);
  CHECK(buffers.of(3, 1) == 0);
  CHECK(buffers.of(3, 0) == -1);  // the parameter
  CHECK(buffers[0].born == TaskOfCall{0, 0});
  CHECK(buffers[0].dies == TaskOfCall{3, 1});
  CHECK(buffers[2].born == TaskOfCall{1, 0});
  CHECK(buffers[2].dies == TaskOfCall{2, 1});
  CHECK(buffers[3].born == TaskOfCall{1, 0});
  CHECK(buffers[3].dies == TaskOfCall{1, 1});
  CHECK(buffers[0].bytes == 8_B);
  CHECK(buffers[0].category == Category::activations);
  CHECK(buffers[0].slot->name == "x");
  CHECK(buffers[1].tensor == 1);
  CHECK_FALSE(buffers.misuse());
}

TEST_CASE("segments bind a block's slots to tensors of their own") {
  Program program = two_passes({call_of(0, {0, 0, forward}), call_of(0, {0, 0, forward}),
                                call_of(1, {0, 0, backward}), call_of(1, {0, 0, backward})});
  program.segment_tensors = {{10, 11, 12}, {20, 21, 22}};
  for (const int c : {0, 1, 2, 3})
    program.sequences[0].calls.stored()[c].segment = c == 1 || c == 2 ? 1 : 0;
  const Buffers buffers = buffers_of(program);
  CHECK(buffers[0].tensor == 10);
  CHECK(buffers[2].tensor == 20);
  CHECK(buffers.of(2, 1) == 2);
  CHECK(buffers.of(3, 1) == 0);
  CHECK_FALSE(buffers.misuse());
}

TEST_CASE("a tensor that is made anew is another buffer") {
  const Program program = two_passes({call_of(0, {0, 0, forward}), call_of(1, {0, 0, backward}),
                                      call_of(0, {0, 0, forward}), call_of(1, {0, 0, backward})});
  const Buffers buffers = buffers_of(program);
  CHECK(buffers.of(1, 1) == 0);
  CHECK(buffers.of(3, 1) == 2);
  CHECK(buffers[0].dies == TaskOfCall{1, 1});
  CHECK_FALSE(buffers.misuse());
}

TEST_CASE("slices have buffers of their own, and backward passes those of the last repeat") {
  const auto freed_by = [](const Program& program) {
    const Buffers buffers = buffers_of(program);
    Numbers calls;
    for (int number = 0; number < buffers.count(); number += 2)
      calls.push_back(buffers[number].dies ? buffers[number].dies->call : -1);
    return calls;
  };
  CHECK(freed_by(two_passes({call_of(0, {0, 0, forward, 0}), call_of(0, {0, 0, forward, 1}),
                             call_of(1, {0, 0, backward, 1}), call_of(1, {0, 0, backward, 0})})) ==
        Numbers{3, 2});
  CHECK(freed_by(two_passes({call_of(0, {0, 0, forward, 0, 0}), call_of(0, {0, 0, forward, 0, 1}),
                             call_of(1, {0, 0, backward})})) == Numbers{-1, 2});
}

TEST_CASE("where iterations overlap, a call takes what its own iteration has left") {
  // A round runs B of the iteration before, then F.
  const Program program =
      two_passes({call_of(1, {0, 0, backward}, 1), call_of(0, {0, 0, forward}, 0)});
  const Buffers buffers = buffers_of(program);
  CHECK(buffers.of(0, 1) == 0);
  CHECK(buffers[0].born == TaskOfCall{1, 0});
  CHECK(buffers[0].dies == TaskOfCall{0, 1});
  CHECK_FALSE(buffers.misuse());
}

TEST_CASE("a tensor that moves from one place to another is another buffer") {
  Program program = two_passes({call_of(0, {0, 0, forward}), call_of(2, {0, 0, forward}),
                                call_of(3, {0, 0, backward}), call_of(1, {0, 0, backward})});
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    Block& moves = program.blocks.emplace_back();
    moves.slots = {{.name = "x", .tensor = 0, .bytes = 8_B},
                   {.name = "x", .tensor = 0, .bytes = 8_B, .place = Residence::host}};
    moves.tasks = {{.reads = {from}, .writes = {to}, .allocates = {to}, .frees = {from}}};
  }
  const Buffers buffers = buffers_of(program);
  CHECK_FALSE(buffers.misuse());
  CHECK(buffers[0].dies == TaskOfCall{1, 0});
  CHECK(buffers.of(1, 0) == 0);
  CHECK(buffers.of(1, 1) == 2);
  CHECK(buffers[2].place == Residence::host);
  CHECK(buffers[2].dies == TaskOfCall{2, 0});
  CHECK(buffers.of(3, 1) == buffers.of(2, 0));
  CHECK(buffers[3].dies == TaskOfCall{3, 1});
}

TEST_CASE("residents follow, and live always or from one task to another") {
  Program program = two_passes({call_of(0, {0, 0, forward}), call_of(1, {0, 0, backward})});
  program.sequences[0].residents = {{.category = Category::parameters, .bytes = 4_B, .tensor = 2},
                                    {.category = Category::gradients,
                                     .bytes = 3_B,
                                     .span = Resident::Span{{0, 1}, {1, 1}},
                                     .place = Residence::host}};
  const Buffers buffers = buffers_of(program);
  REQUIRE(buffers.count() == 4);
  CHECK(buffers.resident(1) == 3);
  CHECK_FALSE(buffers[2].born);
  CHECK_FALSE(buffers[2].dies);
  CHECK(buffers[2].slot == nullptr);
  CHECK(buffers[3].bytes == 3_B);
  CHECK(buffers[3].place == Residence::host);
  CHECK(buffers[3].born == TaskOfCall{0, 1});
  CHECK(buffers[3].dies == TaskOfCall{1, 1});
  const auto events = [&](bool born, const TaskOfCall& task) {
    Numbers numbers;
    const auto add = [&](int number) { numbers.push_back(number); };
    born ? buffers.each_allocated(task, add) : buffers.each_freed(task, add);
    return numbers;
  };
  CHECK(events(true, {0, 0}) == Numbers{0, 1});
  CHECK(events(true, {0, 1}) == Numbers{3});
  CHECK(events(false, {0, 1}) == Numbers{1});
  CHECK(events(false, {1, 1}) == Numbers{0, 3});
}

TEST_CASE("the first misuse is told") {
  const auto misuse = [](const std::vector<StoredCall>& calls) {
    const Program program = two_passes(calls);
    const auto found = buffers_of(program).misuse();
    return found ? std::tuple(found->task.call, found->task.task, found->promise)
                 : std::tuple(-1, -1, std::string());
  };
  const StoredCall f = call_of(0, {0, 0, forward}), b = call_of(1, {0, 0, backward});
  CHECK(misuse({f, b}) == std::tuple(-1, -1, std::string()));
  CHECK(misuse({b, f}) == std::tuple(0, 0, "to be alive when it is read"));
  CHECK(misuse({f, b, b}) == std::tuple(2, 0, "to be alive when it is read"));
  CHECK(misuse({f, call_of(1, {0, 1, backward})}) ==
        std::tuple(1, 0, "to be alive when it is read"));
  CHECK(misuse({f, f, b}) ==
        std::tuple(1, 1, "to be the only one of its tensor that outlives a call"));
}

TEST_CASE("whatever is lowered, a task uses buffers of its tensors that live then") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  for (const lowering::Variant& variant : lowering::variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    const Program program = lowering::lowered(graph, variant.strategy, variant.micro_batches);
    for (const Sequence& sequence : program.sequences) {
      const Buffers buffers(program, sequence);
      const auto when = [&](const TaskOfCall& task) {
        return std::tuple(sequence.calls[task.call].lag, task.call, task.task);
      };
      int allocated = 0;
      bool hold = true;
      for (int c = 0; c < static_cast<int>(sequence.calls.size()); ++c) {
        const Call& call = sequence.calls[c];
        const Block& block = program.blocks[call.block];
        for (int t = 0; t < static_cast<int>(block.tasks.size()); ++t) {
          const Task& task = block.tasks[t];
          allocated += static_cast<int>(task.allocates.size());
          for (const auto* slots : {&task.reads, &task.writes}) {
            for (const int slot : *slots) {
              const int number = buffers.of(c, slot);
              hold &= is_resident(block.slots[slot].category) == (number < 0);
              if (number < 0) continue;
              const Buffer buffer = buffers[number];
              hold &= buffer.tensor == tensor_of(program, call, block.slots[slot].tensor);
              hold &= when(*buffer.born) <= when({c, t}) && when({c, t}) <= when(*buffer.dies);
            }
          }
        }
      }
      CHECK(hold);
      CHECK(buffers.resident(0) == allocated);
    }
  }
}

}  // namespace stratagem::program::buffers_test
