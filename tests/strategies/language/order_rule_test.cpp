// Order rules against loops written by hand: GPipe, nnScaler's tables 4 and 7, and random rules.
#include <random>
#include <set>

#include "strategies/language/expand.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::order_rule_test {

using lowering::refusal;
using placement::Cell;
using placement::CellPass;

namespace {

using Pairs = std::vector<std::pair<Cell, Cell>>;

constexpr CellPass f = CellPass::forward;
constexpr CellPass b = CellPass::backward;

Pairs pairs(const std::vector<placement::Order>& orders) {
  Pairs result;
  for (const placement::Order& order : orders) result.emplace_back(order.before, order.after);
  return result;
}

Pairs expanded(const OrderRule& rule, const Extent& extent) { return pairs(expand(rule, extent)); }

/// The one line that a rule is refused with, "" if it is not.
std::string refusal(OrderRule rule, const Extent& extent = {.stages = 4, .micro_batches = 8}) {
  rule.path = "/orders/2";
  try {
    expand(rule, extent);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::vector<Extent>& extents() {
  static const std::vector<Extent> list = {{1, 1}, {1, 5}, {2, 1}, {3, 2}, {4, 8}, {5, 3}, {8, 16}};
  return list;
}

/// nnScaler, table 4. Canonical: offset 0; literal, with stages from 0: offset 1.
std::vector<OrderRule> one_f_one_b_rules(const std::string& ofst) {
  return {{"F(i, m)", "F(i, n)", {}, "m < n", ""},
          {"B(i, m)", "B(i, n)", {}, "m < n", ""},
          {"F(i, m + ofst)", "B(i, m)", {{"ofst", ofst}}, "", ""},
          {"B(i, m)", "F(i, m + ofst + 1)", {{"ofst", ofst}}, "", ""}};
}

bool exists(const Cell& cell, const Extent& extent) {
  return cell.stage >= 0 && cell.stage < extent.stages && cell.micro_batch >= 0 &&
         cell.micro_batch < extent.micro_batches;
}

/// Does `cell` wait for a cell that is still to come?
bool waits(const Cell& cell, const std::set<Cell>& left, const Pairs& orders) {
  return std::ranges::any_of(orders, [&](const auto& order) {
    return order.second == cell && left.contains(order.first);
  });
}

/// The most micro-batches that a stage holds at once: it runs what orders allow, and at every step
/// they must allow one cell only.
int in_flight(int stage, int micro_batches, const Pairs& orders) {
  std::set<Cell> left;
  for (int m = 0; m < micro_batches; ++m) left.insert({{stage, m, f}, {stage, m, b}});
  int most = 0;
  for (int now = 0; !left.empty();) {
    std::vector<Cell> ready;
    for (const Cell& cell : left) {
      if (!waits(cell, left, orders)) ready.push_back(cell);
    }
    REQUIRE(ready.size() == 1);
    left.erase(ready.front());
    now += ready.front().pass == f ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

std::vector<int> in_flight_by_stage(const std::string& ofst, const Extent& extent) {
  Pairs orders;
  for (const OrderRule& rule : one_f_one_b_rules(ofst)) {
    const Pairs more = expanded(rule, extent);
    orders.insert(orders.end(), more.begin(), more.end());
  }
  std::vector<int> result;
  for (int stage = 0; stage < extent.stages; ++stage)
    result.push_back(in_flight(stage, extent.micro_batches, orders));
  return result;
}

}  // namespace

TEST_CASE("GPipe's rules are what its loops say") {
  for (const Extent& extent : extents()) {
    Pairs forward;
    Pairs turn;
    Pairs backward;
    for (int i = 0; i < extent.stages; ++i) {
      const int last = extent.micro_batches - 1;
      turn.push_back({{i, last, f}, {i, 0, b}});
      for (int m = 0; m < last; ++m) {
        forward.push_back({{i, m, f}, {i, m + 1, f}});
        backward.push_back({{i, m, b}, {i, m + 1, b}});
      }
    }
    CHECK(expanded({"F(i, m)", "F(i, m+1)"}, extent) == forward);
    CHECK(expanded({"F(i, M-1)", "B(i, 0)"}, extent) == turn);
    CHECK(expanded({"B(i,m)", "B(i,m+1)"}, extent) == backward);
  }
}

TEST_CASE("table 4 is what its loops say, literally and as PipeDream-flush") {
  for (const Extent& extent : extents()) {
    for (const int literal : {0, 1}) {
      const auto rules = one_f_one_b_rules(literal == 1 ? "S - i" : "S - 1 - i");
      std::vector<Pairs> expected(4);
      const int count = extent.micro_batches;
      for (int i = 0; i < extent.stages; ++i) {
        const int ofst = extent.stages - 1 - i + literal;
        for (int m = 0; m < count; ++m) {
          for (int n = m + 1; n < count; ++n) {
            expected[0].push_back({{i, m, f}, {i, n, f}});
            expected[1].push_back({{i, m, b}, {i, n, b}});
          }
          if (m + ofst < count) expected[2].push_back({{i, m + ofst, f}, {i, m, b}});
          if (m + ofst + 1 < count) expected[3].push_back({{i, m, b}, {i, m + ofst + 1, f}});
        }
      }
      for (std::size_t row = 0; row < 4; ++row) {
        INFO("row " << row + 1 << ", S " << extent.stages << ", M " << count);
        CHECK(expanded(rules[row], extent) == expected[row]);
      }
    }
  }
}

TEST_CASE("table 4 read with stages from 0 holds one micro-batch more than PipeDream-flush") {
  const Extent extent{.stages = 4, .micro_batches = 8};
  CHECK(in_flight_by_stage("S - i", extent) == std::vector<int>{5, 4, 3, 2});
  CHECK(in_flight_by_stage("S - 1 - i", extent) == std::vector<int>{4, 3, 2, 1});
  // Just enough micro-batches for the warm-up of the first stage.
  CHECK(in_flight_by_stage("S - i", {.stages = 4, .micro_batches = 5}) ==
        std::vector<int>{5, 4, 3, 2});
}

TEST_CASE("table 7, 3F1B, is what its loops say") {
  for (Extent extent : extents()) {
    extent.repeats = 3;
    const int count = extent.micro_batches;
    Pairs first;
    Pairs second;
    Pairs third;
    for (int i = 0; i < extent.stages; ++i) {
      // m+2 and m+1 of the table are m+1 and m of these loops: m begins at -1 there.
      for (int m = 0; m + 1 < count; ++m) {
        first.push_back({{i, m + 1, f, 0, 0}, {i, m, f, 0, 1}});
        second.push_back({{i, m + 1, f, 0, 1}, {i, m, f, 0, 2}});
      }
      const int ofst = extent.stages - 1 - i;
      for (int m = 0; m + ofst < count; ++m) third.push_back({{i, m + ofst, f, 0, 2}, {i, m, b}});
    }
    CHECK(expanded({"F1(i, m+2)", "F2(i, m+1)"}, extent) == first);
    CHECK(expanded({"F2(i, m+1)", "F3(i, m)"}, extent) == second);
    const std::vector<std::pair<std::string, std::string>> let = {{"ofst", "S-1-i"}};
    CHECK(expanded({"F3(i, m+ofst)", "B(i, m)", let}, extent) == third);
    CHECK(expanded({"F(i, m+ofst)", "B(i, m)", let}, extent) == third);  // F is the last one
  }
}

TEST_CASE("slices are told apart where they are named and taken together where they are not") {
  const Extent extent{.stages = 1, .micro_batches = 1, .slices = 3};
  CHECK(expanded({"F(i, m, k)", "F(i, m, k+1)"}, extent) ==
        Pairs{{{0, 0, f, 0}, {0, 0, f, 1}}, {{0, 0, f, 1}, {0, 0, f, 2}}});
  CHECK(expanded({"F(i, m, K-1)", "B(i, m)"}, extent) == Pairs{{{0, 0, f, 2}, {0, 0, b, 0}},
                                                               {{0, 0, f, 2}, {0, 0, b, 1}},
                                                               {{0, 0, f, 2}, {0, 0, b, 2}}});
  CHECK(expanded({"B(i, m)", "W(i, m)"}, extent).size() == 9);
}

TEST_CASE("cells that are merely out of range make no instances") {
  CHECK(expanded({"F(9, m)", "B(9, m)"}, {4, 8}).empty());
  CHECK(expanded({"F3(i, m)", "B(i, m)"}, {4, 8}).empty());  // one forward pass only
  CHECK(expanded({"F(i, m, 1)", "B(i, m, 1)"}, {4, 8}).empty());
  CHECK(expanded({"F(i, m+100)", "B(i, m)"}, {4, 8}).empty());
}

TEST_CASE("no instance of a rule with linear coordinates is lost, and none is made up") {
  std::mt19937 random(7);
  const auto factor = [&] { return static_cast<int>(random() % 5) - 2; };
  const auto sum = [](int a, int b, int c) {
    return std::to_string(a) + "*m + i*(" + std::to_string(b) + ") + " + std::to_string(c);
  };
  int rules = 0;
  for (int round = 0; round < 600; ++round) {
    const Extent extent{.stages = 1 + static_cast<int>(random() % 4),
                        .micro_batches = 1 + static_cast<int>(random() % 6)};
    // F(p*i + q, a*m + b*i + c) before B(i + r, d*m + b*i + e): i and m stand alone nowhere.
    const int p = factor(), q = factor(), r = 1 + static_cast<int>(random() % 3);
    const int a = factor(), b_ = factor(), c = factor(), d = factor(), e = factor();
    const OrderRule rule{"F(" + sum(0, p, q) + ", " + sum(a, b_, c) + ")",
                         "B(i + " + std::to_string(r) + ", y)",
                         {{"y", sum(d, b_, e)}}};
    INFO(rule.before << " before " << rule.after << " with y = " << rule.let[0].second);
    std::set<std::pair<Cell, Cell>> expected;
    for (int i = -40; i <= 40; ++i) {
      for (int m = -40; m <= 40; ++m) {
        const Cell before{p * i + q, a * m + b_ * i + c, f};
        const Cell after{i + r, d * m + b_ * i + e, b};
        if (exists(before, extent) && exists(after, extent)) expected.insert({before, after});
      }
    }
    const std::string refused = refusal(rule, extent);
    if (!refused.empty()) {
      // Unless a constant is out of range, m has factor 0 wherever it stands.
      if (refused.find("in some plan") != std::string::npos) {
        REQUIRE(expected.empty());
      } else {
        REQUIRE((a == 0 && d == 0));
      }
      continue;
    }
    ++rules;
    const Pairs found = expanded(rule, extent);
    REQUIRE(std::set<std::pair<Cell, Cell>>(found.begin(), found.end()) == expected);
    REQUIRE(found.size() == expected.size());
  }
  CHECK(rules > 300);
}

TEST_CASE("instances come in the order of the variables' values, whole coordinates first") {
  // j is a whole coordinate, so it changes slowest; i is solved from j + i.
  CHECK(expanded({"F(j+i, 0)", "B(j, 0)"}, {2, 1}) == Pairs{{{0, 0, f}, {0, 0, b}},
                                                            {{1, 0, f}, {0, 0, b}},
                                                            {{0, 0, f}, {1, 0, b}},
                                                            {{1, 0, f}, {1, 0, b}}});
}

TEST_CASE("a hundred thousand instances are made one by one, not searched for") {
  // 64 stages of 2048 micro-batches: sum over ofst = 0 .. 63 of 2048 - ofst.
  CHECK(expanded({"F(i, m+ofst)", "B(i, m)", {{"ofst", "S-1-i"}}}, {64, 2048}).size() ==
        64 * 2048 - 63 * 64 / 2);
}

TEST_CASE("rules that are not of the language are refused") {
  const std::string at = "/orders/2: expected ";
  CHECK(refusal({"F", "B(i, m)"}) == at + "a cell such as \"F(i, m)\", found \"F\"");
  CHECK(refusal({"F(i, m", "B(i, m)"}) == at + "a cell such as \"F(i, m)\", found \"F(i, m\"");
  CHECK(refusal({"F(i)", "B(i, m)"}) ==
        at + "a stage, a micro-batch and perhaps a slice in \"F(i)\", found 1 coordinates");
  for (const std::string pass : {"G", "f", "F0", "B2", "F1x", "F-1", ""}) {
    CHECK(refusal({"B(i, m)", pass + "(i, m)"}) ==
          at + "a pass F, B, W, F1, F2, ..., found \"" + pass + "\"");
  }
  CHECK(refusal({"F(i, m +)", "B(i, m)"}) ==
        at + "a number, a name or \"(\" at column 4 of \"m +\", found the end");
  CHECK(refusal({"F(i, )", "B(i, m)"}) ==
        at + "a number, a name or \"(\" at column 1 of \"\", found the end");
  CHECK(
      refusal({"F(i, m)", "B(i, m)", {}, "m <"}) ==
      "/orders/2/where: expected a number, a name or \"(\" at column 4 of \"m <\", found the end");
}

TEST_CASE("names that stand for nothing are refused, and the nearest is told") {
  const std::string at = "/orders/2: expected ";
  CHECK(refusal({"F(stage, m)", "B(stage, m)", {}, "stge > 0"}) ==
        "/orders/2/where: expected one of the names S, M, K, R, stage, m at column 1 of \"stge > "
        "0\" (did you mean "
        "\"stage\"?), found \"stge\"");
  CHECK(refusal({"F(i, m+x)", "B(i, m)", {{"x", "y"}, {"y", "S-i"}}}) ==
        "/orders/2/let/x: expected one of the names S, M, K, R, i, m at column 1 of \"y\", found "
        "\"y\"");  // y comes later
  // Misspelt in a pattern it would be a variable, and the let-name without use.
  CHECK(refusal({"F(i, m+ofts)", "B(i, m)", {{"ofst", "S-1-i"}}}) ==
        at + "a use of the let-name \"ofst\" (did you mean \"ofts\"?), found no use");
  CHECK(refusal({"F(i, m)", "B(i, m)", {{"S", "3"}}}) ==
        at + "a let-name that has no value yet, found \"S\"");
  CHECK(refusal({"F(i, x)", "B(i, m)", {{"x", "m"}, {"x", "m"}}}) ==
        at + "a let-name that has no value yet, found \"x\"");
  for (const std::string name : {"", "2x", "a b", "min"}) {
    CHECK(refusal({"F(i, m)", "B(i, m)", {{name, "1"}}}) ==
          at + "a let-name of letters, digits and _, found \"" + name + "\"");
  }
}

TEST_CASE("rules that no plan can have an instance of are refused") {
  const std::string stage = "/orders/2: expected a stage from 0 to S-1 in some plan, found ";
  const std::string micro_batch =
      "/orders/2: expected a micro-batch from 0 to M-1 in some plan, found ";
  CHECK(refusal({"F(S, m)", "B(i, m)"}) == stage + "\"S\"");
  CHECK(refusal({"F(i, m)", "B(-1, m)"}) == stage + "\"-1\"");
  CHECK(refusal({"F(i+S, m)", "B(i, m)"}) == stage + "\"i+S\"");
  CHECK(refusal({"F(i, m-M)", "B(i, m)"}) == micro_batch + "\"m-M\"");
  CHECK(refusal({"F(i, x)", "B(i, m)", {{"x", "m + 2*M"}}}) == micro_batch + "\"x\"");
  CHECK(refusal({"F(i, m, K)", "B(i, m)"}) ==
        "/orders/2: expected a slice from 0 to K-1 in some plan, found \"K\"");
  // These exist in some plans.
  for (const std::string cell : {"F(S-1, m)", "F(S-9, m)", "F(i, m+M-1)", "F(M, m)", "F(i+S-1, m)"})
    CHECK(refusal({cell, "B(i, m)"}).empty());
}

TEST_CASE("a cell before itself is refused") {
  CHECK(refusal({"F(i, m)", "F(i, m)"}) ==
        "/orders/2: expected two cells, found a cell before itself");
  CHECK(refusal({"F(9, m)", "F(9, m)"}) ==
        "/orders/2: expected two cells, found a cell before itself");
  CHECK(refusal({"F(i, m)", "F(i, n)"}) ==
        "/orders/2: expected two cells, found F(stage 0, micro-batch 0) before itself (i = 0, m = "
        "0, n = 0)");
}

TEST_CASE("variables that no coordinate tells and rules without bounds are refused") {
  CHECK(refusal({"F(i, m % 2)", "B(i, 3)"}) ==
        "/orders/2: expected a coordinate that tells the values of \"m\" (alone, or with + - and "
        "whole factors), found i, m % 2, i, 3");
  CHECK_THAT(refusal({"F(i+j, m)", "B(i-j, m)"}),
             ContainsSubstring("tells the values of \"i\", \"j\""));
  CHECK_THAT(refusal({"F(i, m)", "B(j, n)"}, {64, 2048}),
             ContainsSubstring("at most 10000000 combinations"));
  CHECK(refusal({"F(i, m)", "B(i, m)", {{"x", "M / m"}}, "x > 1"}) ==
        "/orders/2/let/x: expected a divisor other than 0 at column 3 of \"M / m\", found 0 where "
        "M = 8, "
        "m = 0");
  CHECK_THAT(refusal({"F(i, m - 9223372036854775807)", "B(i, 0)"}),
             ContainsSubstring("at most 64 bits"));
}

}  // namespace stratagem::strategies::order_rule_test
