// Orders of cells: GPipe and 1F1B against their literal lists, and what orders are refused.
#include "strategies/parallel/all.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::schedules_test {

using lowering::cells_of;
using lowering::lower;
using lowering::lowered;
using lowering::plain_stack;
using lowering::refusal;
using lowering::small_gpt;
using placement::Cell;
using placement::CellPass;
using placement::Order;
using program::Program;

namespace {

std::string strategy(int stages, const std::string& schedule) {
  return "{\"pipeline\": " + std::to_string(stages) + ", \"schedule\": \"" + schedule + "\"}";
}

void add(std::string& text, const std::string& pass, int micro_batch) {
  text += (text.empty() ? "" : " ") + pass + std::to_string(micro_batch);
}

/// Splits "a before b before c".
std::vector<std::string> chain(const std::string& text) {
  std::vector<std::string> result;
  const std::string word = " before ";
  std::size_t begin = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, begin)) {
    result.push_back(text.substr(begin, at - begin));
    begin = at + word.size();
  }
  result.push_back(text.substr(begin));
  return result;
}

}  // namespace

TEST_CASE("GPipe runs all forward cells, then all backward cells") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int p : {1, 2, 4}) {
    for (const int m : {1, 2, 3, 4, 8}) {
      std::string expected;
      for (int i = 0; i < m; ++i) add(expected, "F", i);
      for (int i = 0; i < m; ++i) add(expected, "B", i);
      const Program program = lowered(graph, strategy(p, "gpipe"), m);
      REQUIRE(static_cast<int>(program.sequences.size()) == p);
      for (int stage = 0; stage < p; ++stage) {
        INFO("p " << p << ", m " << m << ", stage " << stage);
        CHECK(cells_of(program, stage) == expected);
      }
    }
  }
}

TEST_CASE("1F1B warms up with min(m, p-1-s) forward cells, alternates, and drains") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int p : {1, 2, 4}) {
    for (const int m : {1, 2, 3, 4, 8}) {
      const Program program = lowered(graph, strategy(p, "1f1b"), m);
      for (int stage = 0; stage < p; ++stage) {
        INFO("p " << p << ", m " << m << ", stage " << stage);
        // Narayanan et al., PipeDream: w forward, (m-w) pairs, w backward.
        const int warm_up = std::min(m, p - 1 - stage);
        std::string phases;
        for (int i = 0; i < warm_up; ++i) add(phases, "F", i);
        for (int i = 0; i < m - warm_up; ++i) {
          add(phases, "F", warm_up + i);
          add(phases, "B", i);
        }
        for (int i = m - warm_up; i < m; ++i) add(phases, "B", i);
        // nnScaler's slots: at step t >= s, (t-s) even is F((t-s)/2), odd is B((t-s-1)/2 -
        // (p-1-s)).
        std::string slots;
        for (int t = stage; t < 2 * m + 2 * (p - 1); ++t) {
          const bool forward = (t - stage) % 2 == 0;
          const int i = forward ? (t - stage) / 2 : (t - stage - 1) / 2 - (p - 1 - stage);
          if (i >= 0 && i < m) add(slots, forward ? "F" : "B", i);
        }
        REQUIRE(phases == slots);
        CHECK(cells_of(program, stage) == phases);
      }
    }
  }
}

TEST_CASE("1F1B on four stages, written out") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program eight = lowered(graph, strategy(4, "1f1b"), 8);
  CHECK(cells_of(eight, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  CHECK(cells_of(eight, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  CHECK(cells_of(eight, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
  const Program two = lowered(graph, strategy(4, "1f1b"), 2);
  CHECK(cells_of(two, 0) == "F0 F1 B0 B1");
  CHECK(cells_of(two, 2) == "F0 F1 B0 B1");
  CHECK(cells_of(two, 3) == "F0 B0 F1 B1");
}

TEST_CASE("a user's own complete order is followed") {
  // GPipe with its backward cells the other way round.
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.micro_batches = 3;
  for (int i = 0; i < 2; ++i) {
    plan.order({0, i, CellPass::forward}, {0, i + 1, CellPass::forward});
    plan.order({0, i + 1, CellPass::backward}, {0, i, CellPass::backward});
  }
  plan.order({0, 2, CellPass::forward}, {0, 2, CellPass::backward});
  CHECK(cells_of(lower(plan, plain_stack()), 0) == "F0 F1 F2 B2 B1 B0");
}

TEST_CASE("orders that contradict each other are refused with one cycle") {
  // Two stages of two micro-batches. Stage 0 wants B0 before F1, stage 1 wants F1 before B0:
  // B0 of stage 0 needs B0 of stage 1, which waits for F1 of stage 1, which needs F1 of stage 0.
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan = lowering::plan_of(graph, strategy(2, "gpipe"), 1);
  plan.micro_batches = 2;
  const std::vector<Order> mine = {{{0, 0, CellPass::forward}, {0, 0, CellPass::backward}},
                                   {{0, 0, CellPass::backward}, {0, 1, CellPass::forward}},
                                   {{0, 1, CellPass::forward}, {0, 1, CellPass::backward}},
                                   {{1, 0, CellPass::forward}, {1, 1, CellPass::forward}},
                                   {{1, 1, CellPass::forward}, {1, 0, CellPass::backward}},
                                   {{1, 0, CellPass::backward}, {1, 1, CellPass::backward}}};
  for (const Order& order : mine) plan.order(order.before, order.after);
  std::vector<std::pair<std::string, std::string>> known;
  const auto know = [&](const Cell& before, const Cell& after) {
    const auto name = [](const Cell& cell) {
      return to_text(cell) + " on device " + std::to_string(cell.stage);
    };
    known.emplace_back(name(before), name(after));
  };
  for (const Order& order : mine) know(order.before, order.after);
  for (int m = 0; m < 2; ++m) {
    know({0, m, CellPass::forward}, {1, m, CellPass::forward});
    know({1, m, CellPass::backward}, {0, m, CellPass::backward});
  }
  const std::string text = refusal([&] { lower(plan, plain_stack()); });
  INFO(text);
  const std::size_t found = text.find("found ");
  REQUIRE(found != std::string::npos);
  std::string printed = text.substr(found + 6);
  printed.erase(std::remove(printed.begin(), printed.end(), '"'), printed.end());
  const std::vector<std::string> cycle = chain(printed);
  REQUIRE(cycle.size() == 5);
  CHECK(cycle.front() == cycle.back());
  for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
    INFO(cycle[i] << " before " << cycle[i + 1]);
    CHECK(std::find(known.begin(), known.end(), std::make_pair(cycle[i], cycle[i + 1])) !=
          known.end());
  }
}

TEST_CASE("a backward cell before its own forward cell is a cycle of two") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.order({0, 0, CellPass::backward}, {0, 0, CellPass::forward});
  const std::string text = refusal([&] { lower(plan, plain_stack()); });
  CHECK(chain(text).size() == 3);
}

TEST_CASE("cells that nothing orders are refused by name") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.micro_batches = 2;
  plan.order({0, 0, CellPass::forward}, {0, 1, CellPass::forward});
  plan.order({0, 1, CellPass::forward}, {0, 0, CellPass::backward});
  const std::string text = refusal([&] { lower(plan, plain_stack()); });
  CHECK_THAT(text, ContainsSubstring("B(stage 0, micro-batch 0)"));
  CHECK_THAT(text, ContainsSubstring("B(stage 0, micro-batch 1)"));
  plan.order({0, 0, CellPass::backward}, {0, 1, CellPass::backward});
  CHECK(refusal([&] { lower(plan, plain_stack()); }).empty());
}

}  // namespace stratagem::strategies::schedules_test
