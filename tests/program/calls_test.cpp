// Calls and loops over them: what each number, wait and launch of a turn is.
#include "program/calls.hpp"

#include <utility>
#include <vector>

#include "program/check/check.hpp"
#include "program/program.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::program::calls_test {

using placement::Cell;
using placement::CellPass;

namespace {

constexpr CellPass forward = CellPass::forward;
constexpr CellPass backward = CellPass::backward;

/// Call 0, then F(2t) F(2t + 1) three times, then B(0) twice: numbers 0, 1-6, 7, 8.
Calls two_loops() {
  return {{{.block = 9},
           {.block = 0, .cell = {0, 0, forward}, .waits = {{0, 0, 3}}},
           {.block = 1,
            .cell = {0, 1, forward},
            .waits = {{1, 1, 0}, {0, 0, 0}},
            .host_waits = {{-1, -1, 4}, {0, 1, 0}}},
           {.block = 2, .cell = {0, 0, backward}, .waits = {{0, 6, 0}}}},
          {{.first = 1, .calls = 2, .turns = 3, .step = 2}, {.first = 3, .turns = 2, .step = 1}}};
}

}  // namespace

TEST_CASE("calls of loops are numbered turn by turn") {
  const Calls calls = two_loops();
  REQUIRE(calls.size() == 9);
  std::vector<std::pair<int, int>> seen;  // block and micro-batch
  for (const Call& call : calls) seen.emplace_back(call.block, call.cell.micro_batch);
  CHECK(seen == std::vector<std::pair<int, int>>{
                    {9, 0}, {0, 0}, {1, 1}, {0, 2}, {1, 3}, {0, 4}, {1, 5}, {2, 0}, {2, 1}});
  for (int number = 0; number < 9; ++number) CHECK(calls.number(calls.place(number)) == number);
  CHECK(calls.place(6).stored == 2);
  CHECK(calls.place(6).turn == 2);
  CHECK(calls.place(8).stored == 3);
  CHECK(calls.place(8).turn == 1);
  CHECK(calls.loop_of(0) == nullptr);
  CHECK(calls.loop_of(2) == &calls.loops()[0]);
  CHECK(calls.loop_of(3) == &calls.loops()[1]);
}

TEST_CASE("what comes after a loop is numbered behind its last turn") {
  Calls calls({{.block = 0}}, {{.first = 0, .turns = 5}});
  calls.stored().push_back({.block = 1});
  REQUIRE(calls.size() == 6);
  CHECK(calls[4].block == 0);
  CHECK(calls[5].block == 1);
  CHECK(calls.number({1, 0}) == 5);
}

TEST_CASE("waits of later turns are for calls as far before") {
  const Calls calls = two_loops();
  CHECK(calls[2].waits.size() == 2);
  CHECK(calls[2].waits[0] == Wait{1, 1, 0});
  CHECK(calls[6].waits[0] == Wait{1, 5, 0});
  CHECK(calls[6].waits[1] == Wait{0, 4, 0});
  CHECK(calls[8].waits[0] == Wait{0, 7, 0});
  std::size_t number = 0;
  for (const Call& call : calls) {  // the same one after another as by number
    const Call same = calls[number++];
    CHECK(call.cell == same.cell);
    REQUIRE(call.waits.size() == same.waits.size());
    for (std::size_t i = 0; i < call.waits.size(); ++i) CHECK(call.waits[i] == same.waits[i]);
    REQUIRE(call.host_waits.size() == same.host_waits.size());
    for (std::size_t i = 0; i < call.host_waits.size(); ++i)
      CHECK(call.host_waits[i] == same.host_waits[i]);
  }
  CHECK(number == calls.size());
  CHECK(calls[2].host_waits[1] == HostWait{0, 1, 0});
  CHECK(calls[6].host_waits[1] == HostWait{0, 5, 0});
  CHECK(calls[6].host_waits[0] == HostWait{-1, -1, 4});  // for what is no call
}

TEST_CASE("a loop launches what its body does, turn by turn") {
  Sequence sequence{.calls = two_loops()};
  sequence.launches = {{0, 0, 1}, {1, 0, 1}, {2, 0, 2}, {1, 1, 2}, {3, 0, 1}};
  const std::vector<Launch> all = {{0, 0, 1}, {1, 0, 1}, {2, 0, 2}, {1, 1, 2},
                                   {3, 0, 1}, {4, 0, 2}, {3, 1, 2}, {5, 0, 1},
                                   {6, 0, 2}, {5, 1, 2}, {7, 0, 1}, {8, 0, 1}};
  const Sequence spelled_out = unrolled(sequence);
  CHECK(spelled_out.launches == all);
  CHECK(spelled_out.calls.loops().empty());
  CHECK(spelled_out.calls.stored()[6].waits == std::vector<Wait>{{1, 5, 0}, {0, 4, 0}});
  CHECK(spelled_out.calls.stored()[6].host_waits == std::vector<HostWait>{{-1, -1, 4}, {0, 5, 0}});
  CHECK(first_beside(sequence) == std::vector<int>{0, 1, 1, 3, 3, 5, 5, 7, 8});
  CHECK(first_beside(spelled_out) == first_beside(sequence));
}

namespace {

/// A block of two tasks once, then one of three tasks in a loop.
Program looped(const Wait& wait) {
  Program program;
  program.blocks = {{.name = "once", .tasks = {{.name = "a"}, {.name = "b"}}},
                    {.name = "body", .tasks = {{.name = "x"}, {.name = "y"}, {.name = "z"}}}};
  program.sequences.push_back({.calls = {{{.block = 0}, {.block = 1, .waits = {wait}}},
                                         {{.first = 1, .turns = 5, .step = 1}}}});
  program.devices.push_back({});
  return program;
}

std::string refused(const Program& program) {
  return lowering::refusal([&] { check(program); });
}

}  // namespace

TEST_CASE("a wait of a loop is checked in each turn in which it may be wrong") {
  // In turn 0 it is for the call before the loop, which has two tasks; then for the turn before.
  CHECK(refused(looped({0, 0, 1})).empty());
  CHECK_THAT(refused(looped({0, 0, 2})),
             ContainsSubstring("x of body in F(stage 0, micro-batch 0)") &&
                 ContainsSubstring("a wait for task 2 of call 0, which is missing"));
  Program program = looped({0, 0, 1});
  std::swap(program.blocks[0].tasks, program.blocks[1].tasks);
  program.sequences[0].calls.stored()[1].waits = {{0, 0, 2}};
  CHECK_THAT(refused(program), ContainsSubstring("a of body in F(stage 0, micro-batch 1)"));
  // So is one of the host.
  StoredCall& body = program.sequences[0].calls.stored()[1];
  body.waits = {};
  body.host_waits = {{0, 0, 1}};
  CHECK(refused(program).empty());
  body.host_waits = {{0, 0, 2}};
  CHECK_THAT(refused(program), ContainsSubstring("a of body in F(stage 0, micro-batch 1)"));
}

TEST_CASE("launches of a loop stay within its turns") {
  Program program = looped({0, 0, 1});
  std::vector<Launch>& launches = program.sequences[0].launches;
  launches = {{0, 0, 2}, {1, 0, 3}};
  CHECK(refused(program).empty());
  launches = {{0, 0, 1}, {1, 0, 3}, {0, 1, 2}};
  CHECK_THAT(refused(program), ContainsSubstring("otherwise call 1 at task 0"));
  launches = {{0, 0, 2}, {1, 0, 2}};
  CHECK_THAT(refused(program), ContainsSubstring("otherwise call 1 at task 2"));
}

TEST_CASE("a buffer that one turn of a loop does not free is found") {
  // Each turn makes x; what frees it runs once less.
  Program program;
  program.blocks = {{.name = "makes",
                     .slots = {{.name = "x", .tensor = 0, .bytes = 1_B}},
                     .tasks = {{.name = "make", .writes = {0}, .allocates = {0}}}},
                    {.name = "frees",
                     .slots = {{.name = "x", .tensor = 0, .bytes = 1_B}},
                     .tasks = {{.name = "free", .frees = {0}}}}};
  program.devices.push_back({});
  const auto turns = [&](int freed) {
    program.sequences = {{.calls = {{{.block = 0}, {.block = 1, .cell = {0, 0, backward}}},
                                    {{.first = 0, .turns = 4, .step = 1},
                                     {.first = 1, .turns = freed, .step = 1}}}}};
    return refused(program);
  };
  CHECK(turns(4).empty());
  CHECK_THAT(turns(3), ContainsSubstring("x alive at the end, from make of makes in "
                                         "F(stage 0, micro-batch 3)"));
  CHECK_THAT(turns(5), ContainsSubstring("x to be alive when it is freed") &&
                           ContainsSubstring("B(stage 0, micro-batch 4)"));
}

}  // namespace stratagem::program::calls_test
