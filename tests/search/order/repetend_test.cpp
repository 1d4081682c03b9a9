// Repetends against trying everything, and against the known best ones.
#include "search/order/repetend.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::search {
namespace {

/// Does the schedule keep every rule when so many micro-batches run by it? Looks at every unit of
/// time of every device.
bool runs(const Repeating& problem, const std::vector<int>& begins, int period) {
  const auto span = [&](int b) { return problem.blocks[b].span; };
  const int blocks = static_cast<int>(begins.size());
  const int last = *std::ranges::max_element(begins) + 16;
  const int micro_batches = 2 * (last / period + 2);
  std::map<std::pair<int, int>, int> busy;                  // by device and time
  std::map<std::pair<int, int>, std::int64_t> held_change;  // likewise
  for (int m = 0; m < micro_batches; ++m) {
    const auto begin = [&](int b) { return begins[b] + m * period; };
    for (int b = 0; b < blocks; ++b) {
      for (const int before : problem.blocks[b].after) {
        if (begin(before) + span(before) > begin(b)) return false;
      }
      for (const int device : problem.blocks[b].devices) {
        for (int t = 0; t < span(b); ++t) {
          if (++busy[{device, begin(b) + t}] > 1) return false;
        }
      }
    }
    for (const Held& one : problem.held) {
      held_change[{one.device, begin(one.from)}] += one.amount;
      held_change[{one.device, begin(one.to) + span(one.to)}] -= one.amount;
    }
    for (const Asked& asked : problem.asked) {
      if (begin(asked.before) + span(asked.before) > begin(asked.after) + asked.lag * period)
        return false;
    }
  }
  std::vector<std::int64_t> held(problem.limits.size());
  for (const auto& [where, change] : held_change) {
    if ((held[where.first] += change) > problem.limits[where.first]) return false;
  }
  return true;
}

/// Is there a schedule of this period whose latency is at most so long?
bool any_schedule(const Repeating& problem, int period, int latency) {
  std::vector<int> begins;
  const std::function<bool()> extend = [&] {
    const std::size_t b = begins.size();
    if (b == problem.blocks.size()) return runs(problem, begins, period);
    for (int begin = 0; begin + problem.blocks[b].span <= latency; ++begin) {
      begins.push_back(begin);
      bool possible = true;
      for (const int before : problem.blocks[b].after)
        possible = possible && begins[before] + problem.blocks[before].span <= begin;
      if (possible && extend()) return true;
      begins.pop_back();
    }
    return false;
  };
  return extend();
}

int latency_of(const Repeating& problem, const Repetend& found) {
  int first = found.begins.front(), last = 0;
  for (std::size_t b = 0; b < found.begins.size(); ++b) {
    first = std::min(first, found.begins[b]);
    last = std::max(last, found.begins[b] + problem.blocks[b].span);
  }
  return last - first;
}

/// Three or four blocks on two devices; each may wait for some before it, and some hold memory.
Repeating random_problem(std::mt19937& random) {
  const auto up_to = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  Repeating problem{.limits = {1 + up_to(2), 1 + up_to(2)}};
  const int blocks = 3 + up_to(1);
  for (int b = 0; b < blocks; ++b) {
    Block block{.name = "block " + std::to_string(b), .span = 1 + up_to(1), .devices = {up_to(1)}};
    if (up_to(4) == 0) block.devices = {0, 1};
    for (int before = 0; before < b; ++before) {
      if (up_to(1) == 0) block.after.push_back(before);
    }
    problem.blocks.push_back(block);
  }
  for (int b = 1; b < blocks; ++b) {
    // What is held ends after it has begun only if one block waits for the other.
    for (const int before : problem.blocks[b].after) {
      if (up_to(2) == 0) problem.held.push_back({up_to(1), before, b, 1 + up_to(1) / 2});
    }
  }
  if (up_to(2) == 0) {
    const int one = up_to(blocks - 1);
    problem.asked.push_back({one, (one + 1) % blocks, up_to(2) - 1});
  }
  return problem;
}

/// A pipeline whose stages run `passes` of a chain: {stage, span} of each block in turn; each stage
/// holds 1 from its last forward block to its backward block.
Repeating chain(int stages, int limit, const std::vector<std::pair<int, int>>& passes) {
  Repeating problem{.limits = std::vector<std::int64_t>(stages, limit)};
  for (const auto& [stage, span] : passes) {
    Block block{.name = "block", .span = span, .devices = {stage}};
    if (stage < 0) {
      block.devices.resize(stages);
      std::iota(block.devices.begin(), block.devices.end(), 0);
    }
    if (!problem.blocks.empty()) block.after = {static_cast<int>(problem.blocks.size()) - 1};
    problem.blocks.push_back(block);
  }
  return problem;
}

/// 1F1B's cells: down the stages with F, and up with B.
Repeating v_shape(int stages, int limit, int forward, int backward) {
  std::vector<std::pair<int, int>> passes;
  for (int s = 0; s < stages; ++s) passes.emplace_back(s, forward);
  for (int s = stages; s-- > 0;) passes.emplace_back(s, backward);
  Repeating problem = chain(stages, limit, passes);
  for (int s = 0; s < stages; ++s) problem.held.push_back({s, s, 2 * stages - 1 - s, 1});
  return problem;
}

/// Embedding and head stand on all devices (-1), each with a forward and a backward block.
Repeating interlaced(int stages, int limit) {
  std::vector<std::pair<int, int>> passes = {{-1, 1}};
  for (int s = 0; s < stages; ++s) passes.emplace_back(s, 1);
  passes.insert(passes.end(), {{-1, 1}, {-1, 1}});
  for (int s = stages; s-- > 0;) passes.emplace_back(s, 3);
  passes.emplace_back(-1, 1);
  Repeating problem = chain(stages, limit, passes);
  for (int s = 0; s < stages; ++s) problem.held.push_back({s, 1 + s, 2 * stages + 2 - s, 1});
  return problem;
}

Repeating three_forward(int stages, int limit, int forward, int backward) {
  std::vector<std::pair<int, int>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    for (int s = 0; s < stages; ++s) passes.emplace_back(s, forward);
  }
  for (int s = stages; s-- > 0;) passes.emplace_back(s, backward);
  Repeating problem = chain(stages, limit, passes);
  for (int s = 0; s < stages; ++s)
    problem.held.push_back({s, 2 * stages + s, 4 * stages - 1 - s, 1});
  return problem;
}

}  // namespace

TEST_CASE("the repetend of random blocks is the best that trying everything finds") {
  std::mt19937 random(7);
  int found_some = 0, limited = 0;
  for (int i = 0; i < (sanitized ? 10 : 200); ++i) {
    const Repeating problem = random_problem(random);
    int work = 0;
    for (const Block& block : problem.blocks) work += block.span;
    const auto found = best_repetend(problem);
    INFO("instance " << i);
    const int blocks = static_cast<int>(problem.blocks.size());
    const int shortest = found ? found->period : work + 1;
    // Each block may wait for its device for nearly a period, and once for another micro-batch.
    for (int period = 1; period < shortest; ++period) {
      const int asked = problem.asked.empty() ? 0 : period;
      CHECK_FALSE(any_schedule(problem, period, work + blocks * (period - 1) + asked));
    }
    if (!found) continue;
    ++found_some;
    CHECK(runs(problem, found->begins, found->period));
    CHECK(found->latency == latency_of(problem, *found));
    CHECK_FALSE(any_schedule(problem, found->period, found->latency - 1));
    CHECK(found->least_period == found->period);
    CHECK(found->least_latency == found->latency);
    Repeating free = problem;
    free.limits = {99, 99};
    limited += static_cast<int>(best_repetend(free)->period < found->period);
  }
  CHECK((sanitized || found_some > 100));
  CHECK((sanitized || limited > 3));
}

TEST_CASE("1F1B is found: no bubble, its latency and its memory") {
  for (const auto& [stages, forward, backward] : {std::tuple(4, 1, 2), {8, 1, 2}, {4, 3, 5}}) {
    const auto found = best_repetend(v_shape(stages, stages, forward, backward));
    REQUIRE(found);
    CHECK(found->period == forward + backward);
    CHECK(found->latency == stages * (forward + backward));
    for (int s = 0; s < stages; ++s) CHECK(found->peaks[s] == stages - s);
  }
  // With two in flight on each of four stages half of the time is a bubble.
  CHECK(best_repetend(v_shape(4, 2, 1, 2))->period == 6);
  CHECK_FALSE(best_repetend(v_shape(4, 0, 1, 2)));
}

TEST_CASE("the interlaced pipeline of four stages repeats every 8 units with 6 in flight") {
  // The repeated part of Tessel's artifact has the same period and the same peaks or more.
  const auto found = best_repetend(interlaced(4, 6));
  REQUIRE(found);
  CHECK(found->period == 8);
  CHECK(found->least_latency == found->latency);
  const std::vector<std::int64_t> published = {6, 5, 4, 3};
  for (int s = 0; s < 4; ++s) CHECK(found->peaks[s] <= published[s]);
  CHECK(best_repetend(interlaced(4, 5))->period > 8);
}

TEST_CASE("3F1B is found without a bubble, and faster where its order is asked for") {
  const auto found = best_repetend(three_forward(4, 4, 1, 2));
  REQUIRE(found);
  CHECK(found->period == 3 * 1 + 2);
  Repeating ordered = three_forward(4, 4, 1, 2);
  for (int s = 0; s < 4; ++s) {
    ordered.asked.push_back({s, 4 + s, -1});      // F1 of the next before F2
    ordered.asked.push_back({4 + s, 8 + s, -1});  // F2 of the next before F3
  }
  const auto same = best_repetend(ordered);
  REQUIRE(same);
  CHECK(same->period == 5);
  CHECK(same->latency >= found->latency);
  ordered.asked.push_back({0, 0, 0});
  CHECK_FALSE(best_repetend(ordered));
}

TEST_CASE("an order between distant micro-batches keeps as many in flight") {
  Repeating problem = v_shape(2, 20, 1, 2);  // blocks: F0 F1 B1 B0
  problem.asked.push_back({1, 2, -8});       // F1 of the eighth next before B1
  const auto found = best_repetend(problem);
  REQUIRE(found);
  CHECK(found->period == 3);
  CHECK(found->peaks[1] > 8);
  CHECK(*std::ranges::min_element(found->begins) == 0);
  CHECK(runs(problem, found->begins, found->period));
}

TEST_CASE("a solver that gives up says what it has proved") {
  const auto found = best_repetend(interlaced(4, 6), {.effort = 1'000});
  REQUIRE(found);
  CHECK(found->period >= 8);
  CHECK(found->least_period == 8);  // the work of each device
  CHECK(found->latency > found->least_latency);
  CHECK(runs(interlaced(4, 6), found->begins, found->period));
  // Nobody tries what is asked for first, and the solver has no steps to.
  Repeating far = interlaced(4, 9);
  far.asked.push_back({4, 7, -6});
  CHECK_THROWS_AS(best_repetend(far, {.effort = 1}), InputError);
}

TEST_CASE("a repetend unrolls to the order of each device") {
  const Repeating problem = v_shape(2, 2, 1, 2);
  const auto found = best_repetend(problem);
  REQUIRE(found);
  using One = OrderedBlock;
  const auto order = unrolled(problem, *found, 3);  // blocks: F0 F1 B1 B0
  CHECK(order[0] == std::vector<One>{{0, 0}, {0, 1}, {3, 0}, {0, 2}, {3, 1}, {3, 2}});
  CHECK(order[1] == std::vector<One>{{1, 0}, {2, 0}, {1, 1}, {2, 1}, {1, 2}, {2, 2}});
}

}  // namespace stratagem::search
