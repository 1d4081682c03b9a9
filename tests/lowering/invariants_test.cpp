// Invariants between passes see what a pass could break.
#include "lowering/invariants.hpp"

#include <utility>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::invariants_test {

namespace {

/// Two tasks: the first allocates slot 0, the second frees it and waits for the first.
program::Program two_tasks() {
  program::Block block{.name = "pair", .slots = {{}}, .tasks = {{}, {}}};
  block.tasks[0].allocates = {0};
  block.tasks[1].frees = {0};
  block.tasks[1].waits = {0};
  program::Program program;
  program.blocks = {block};
  return program;
}

}  // namespace

TEST_CASE("a block whose tasks wait backwards and free what they allocated is well formed") {
  expect_blocks(two_tasks());
  program::Program forward = two_tasks();
  forward.blocks[0].tasks[0].waits = {1};
  CHECK_THROWS_AS(expect_blocks(forward), BrokenPromise);
  program::Program missing = two_tasks();
  missing.blocks[0].tasks[1].frees = {1};
  CHECK_THROWS_AS(expect_blocks(missing), BrokenPromise);
  program::Program twice = two_tasks();
  twice.blocks[0].tasks[0].frees = {0};
  CHECK_THROWS_AS(expect_blocks(twice), BrokenPromise);
  program::Program early = two_tasks();
  std::swap(early.blocks[0].tasks[0].allocates, early.blocks[0].tasks[0].frees);
  std::swap(early.blocks[0].tasks[1].allocates, early.blocks[0].tasks[1].frees);
  CHECK_THROWS_AS(expect_blocks(early), BrokenPromise);
}

TEST_CASE("an order of cells misses none, repeats none, and has F before B before W") {
  const model::Graph graph = model::gpt(small_gpt);
  const strategies::Plan plan = plan_of(graph, R"({"pipeline": 2, "schedule": "zb-h1"})", 4);
  const Stages stages(plan);
  expect_stages(stages);
  const CellOrder order = ordered_cells(plan, stages);
  expect_cells(plan, stages, order);
  const std::size_t cells = order.rounds[0].size();
  REQUIRE(cells == 3 * 4);  // F, B and W of four micro-batches
  for (std::size_t i = 0; i + 1 < cells; ++i) {
    CellOrder repeated = order;
    repeated.rounds[0][i + 1] = repeated.rounds[0][i];
    CHECK_THROWS_AS(expect_cells(plan, stages, repeated), BrokenPromise);
  }
  CellOrder reversed = order;
  std::ranges::reverse(reversed.rounds[0]);
  CHECK_THROWS_AS(expect_cells(plan, stages, reversed), BrokenPromise);
  CellOrder fewer = order;
  std::erase_if(fewer.rounds[0],
                [](const ScheduledCell& one) { return one.cell.micro_batch == 3; });
  CHECK_THROWS_AS(expect_cells(plan, stages, fewer), BrokenPromise);
}

TEST_CASE("what a pass fails to leave is told with the pass, except in builds with NDEBUG") {
  const auto broken = [] { check_after("cells", [] { expects(false, "none is there twice"); }); };
#ifdef NDEBUG
  CHECK_NOTHROW(broken());
#else
  CHECK_THROWS_WITH(broken(), "after the pass cells: none is there twice");
#endif
}

}  // namespace stratagem::lowering::invariants_test
