// Timetables of the pipeline schedules: their orders, makespans, bubbles and peaks.
#include <functional>
#include <numeric>

#include "base/input_error.hpp"
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/timetable/list_scheduler.hpp"
#include "tests/catch.hpp"
#include "tests/strategies/schedules/cell_clock.hpp"

namespace stratagem::strategies::timetables_test {

using placement::Cell;
using placement::CellPass;

namespace {

using Durations = std::vector<std::int64_t>;

/// "F0 B0 W0": pass and micro-batch.
std::string text_of(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells)
    text += (text.empty() ? "" : " ") + to_text(cell.pass) + std::to_string(cell.micro_batch);
  return text;
}

Timetable timetable(const std::string& schedule, const Pipeline& pipeline) {
  return std::get<Schedule::TimetableOf>(schedule_named(schedule).orders)(pipeline);
}

Played played(const Timetable& timetable, const ClockCosts& costs) {
  const auto result = play(timetable, costs);
  REQUIRE(result.has_value());
  return *result;
}

/// Forward takes F and the whole backward pass B, which W is not split from.
ClockCosts whole(int forward, int backward) { return {forward, backward, 0}; }

/// A schedule under test, and the pipelines that it orders.
struct Subject {
  std::string name;  ///< of the schedule
  Placement placement;
  std::vector<int> chunks;
  std::function<bool(int, int)> orders;  ///< p ranks, m micro-batches
};

bool any(int, int) { return true; }
bool multiple(int p, int m) { return m % p == 0; }
bool even(int p, int m) { return p % 2 == 0 && m % 2 == 0; }
bool twice(int p, int m) { return m >= 2 * p; }
bool even_twice(int p, int m) { return even(p, m) && twice(p, m); }

std::vector<Subject> subjects() {
  return {{"interleaved", Placement::loop, {2, 3}, multiple},
          {"combined-1f1b", Placement::loop, {1, 2, 3}, multiple},
          {"zb-h1", Placement::loop, {1}, any},
          {"zb-h2", Placement::loop, {1}, any},
          {"zb-v", Placement::wave, {2}, any},
          {"v-half", Placement::wave, {2}, any},
          {"v-min", Placement::wave, {2}, any},
          {"chimera", Placement::bidirectional, {1}, even},
          {"dualpipe", Placement::bidirectional, {1}, even_twice},
          {"dualpipe-v", Placement::wave, {2}, twice},
          {"hanayo", Placement::wave, {2, 4}, any}};
}

/// Calls `check` with every subject and pipeline of a grid that it orders.
void for_all(const std::function<void(const Subject&, const Pipeline&)>& check) {
  for (const Subject& subject : subjects()) {
    for (const int p : {1, 2, 3, 4, 5, 6, 8}) {
      for (const int m : {1, 2, 3, 5, 8, 16}) {
        for (const int v : subject.chunks) {
          if (!subject.orders(p, m)) continue;
          INFO(subject.name << ": p " << p << ", v " << v << ", m " << m);
          for (const CellCosts& costs : {CellCosts{1, 1, 1}, CellCosts{10, 11, 9}})
            check(subject, {p, v, m, costs});
        }
      }
    }
  }
}

int stages_of(const Subject& subject, const Pipeline& pipeline) {
  return subject.placement == Placement::bidirectional ? pipeline.ranks
                                                       : pipeline.ranks * pipeline.chunks;
}

}  // namespace

TEST_CASE("a stage stands where its placement says, and a rank finds its way back") {
  // p = 3: a loop is 0 1 2 | 3 4 5, a wave turns round at both ends, copy 1 stands the other way.
  CHECK(stage_of(Placement::loop, 3, 0, 1) == 3);
  CHECK(stage_of(Placement::wave, 3, 0, 1) == 5);
  CHECK(stage_of(Placement::wave, 3, 0, 2) == 6);
  CHECK(stage_of(Placement::bidirectional, 3, 0, 1) == 2);
  for (const Placement placement : {Placement::loop, Placement::wave, Placement::bidirectional}) {
    for (int p = 1; p <= 5; ++p) {
      for (int rank = 0; rank < p; ++rank) {
        for (int chunk = 0; chunk < 2; ++chunk)
          CHECK(rank_of(placement, p, stage_of(placement, p, rank, chunk), chunk) == rank);
      }
    }
  }
}

TEST_CASE("every cell stands once, on the rank that has its stage") {
  for_all([](const Subject& subject, const Pipeline& pipeline) {
    const Timetable order = timetable(subject.name, pipeline);
    REQUIRE(static_cast<int>(order.ranks.size()) == pipeline.ranks);
    std::map<Cell, int> seen;
    bool placed = true;
    for (int rank = 0; rank < pipeline.ranks; ++rank) {
      for (const Cell& cell : order.ranks[rank]) {
        ++seen[cell];
        const int copy = 2 * cell.micro_batch >= pipeline.micro_batches ? 1 : 0;
        placed = placed && rank_of(subject.placement, pipeline.ranks, cell.stage, copy) == rank;
      }
    }
    CHECK(placed);
    bool once = true;
    for (int stage = 0; stage < stages_of(subject, pipeline); ++stage) {
      for (int m = 0; m < pipeline.micro_batches; ++m) {
        once = once && seen[{stage, m, CellPass::forward}] == 1 &&
               seen[{stage, m, CellPass::backward}] == 1 && seen[{stage, m, CellPass::weight}] <= 1;
      }
    }
    CHECK(once);
    // Nothing else: a forward and a backward cell, or those and a weight cell (0 or 1 above).
    CHECK(static_cast<int>(seen.size()) ==
          3 * stages_of(subject, pipeline) * pipeline.micro_batches);
  });
}

TEST_CASE("every timetable ends, not before its critical path or its busiest rank") {
  for_all([](const Subject& subject, const Pipeline& pipeline) {
    const auto [forward, input, weight] = pipeline.costs;
    const Timetable order = timetable(subject.name, pipeline);
    const Played result = played(order, {forward, input, weight, forward + input + weight});
    // One micro-batch passes all stages twice. A rank runs all cells of its chunks, where
    // bidirectional half of the micro-batches for each of two stages.
    const std::int64_t path = stages_of(subject, pipeline) * (forward + input);
    const std::int64_t busy =
        std::int64_t{1} * pipeline.micro_batches * pipeline.chunks * (forward + input + weight);
    CHECK(result.makespan() >= path + weight);
    CHECK(result.makespan() >= busy);
    for (const PlayedRank& rank : result.ranks) CHECK(rank.busy == busy);
  });
}

TEST_CASE("the clock refuses ranks that wait for each other") {
  // Stage 1 wants B before F, stage 0 hence never gets its gradient.
  const Timetable stuck{{{{0, 0, CellPass::forward}, {0, 0, CellPass::backward}},
                         {{1, 0, CellPass::backward}, {1, 0, CellPass::forward}}},
                        {}};
  CHECK_FALSE(play(stuck, {}).has_value());
}

TEST_CASE("numbers that a schedule cannot order are refused with what it needs") {
  CHECK_THROWS_WITH(timetable("interleaved", {4, 2, 6, {}}),
                    ContainsSubstring("a multiple of the 4 pipeline ranks, found 6"));
  CHECK_THROWS_AS(timetable("interleaved", {4, 1, 8, {}}), InputError);
  CHECK_THROWS_AS(timetable("hanayo", {4, 3, 8, {}}), InputError);
  CHECK_THROWS_AS(timetable("chimera", {3, 1, 8, {}}), InputError);
  CHECK_THROWS_AS(timetable("chimera", {4, 1, 7, {}}), InputError);
  CHECK_THROWS_WITH(timetable("dualpipe", {4, 1, 6, {}}), ContainsSubstring("at least 8"));
  CHECK_THROWS_AS(timetable("dualpipe", {3, 1, 8, {}}), InputError);
  CHECK_THROWS_AS(timetable("dualpipe-v", {4, 2, 7, {}}), InputError);
}

TEST_CASE("interleaved 1F1B warms up, alternates and cools down as Megatron-LM's") {
  struct Row {
    int m, rank, warm_up, steady, cool_down;
  };
  // nnScaler's unit tests, p = 4, v = 2: warm-up min(2(p-1-r) + (v-1)p, mv), the rest in pairs.
  for (const auto& [m, rank, warm_up, steady, cool_down] :
       {Row{4, 0, 8, 0, 8}, Row{4, 1, 8, 0, 8}, Row{4, 2, 6, 4, 6}, Row{4, 3, 4, 8, 4},
        Row{8, 0, 10, 12, 10}, Row{8, 1, 8, 16, 8}, Row{8, 2, 6, 20, 6}, Row{8, 3, 4, 24, 4}}) {
    const auto cells = timetable("interleaved", {4, 2, m, {}}).ranks[rank];
    REQUIRE(static_cast<int>(cells.size()) == warm_up + steady + cool_down);
    for (int i = 0; i < static_cast<int>(cells.size()); ++i) {
      const bool forward = i < warm_up || (i < warm_up + steady && (i - warm_up) % 2 == 0);
      CHECK(cells[i].pass == (forward ? CellPass::forward : CellPass::backward));
    }
  }
  // Chunk 0 takes the first p micro-batches, then chunk 1 does; backward chunk 1 comes first.
  const auto cells = timetable("interleaved", {2, 2, 4, {}}).ranks[1];
  CHECK(text_of(cells) == "F0 F1 F0 B0 F1 B1 F2 B0 F3 B1 F2 B2 F3 B3 B2 B3");
  const std::vector<int> stages{1, 1, 3, 3, 3, 3, 1, 1, 1, 1, 3, 3, 3, 3, 1, 1};
  for (std::size_t i = 0; i < stages.size(); ++i) CHECK(cells[i].stage == stages[i]);
}

TEST_CASE("interleaved 1F1B divides 1F1B's bubble by the chunks") {
  struct Row {
    int p, v, m, forward, backward;
    double makespan;
    std::vector<int> peaks;
  };
  // m(F+B) + (p-1)(F+B)/v for a rank's F and B; cells of a chunk take 1/v of them.
  // Peaks: min(mv, 2(p-1-r) + (v-1)p + 1) chunks.
  for (const auto& [p, v, m, forward, backward, makespan, peaks] :
       {Row{4, 2, 4, 1, 2, 16.5, {8, 8, 7, 5}}, Row{4, 2, 8, 1, 2, 28.5, {11, 9, 7, 5}},
        Row{4, 3, 12, 1, 2, 39, {15, 13, 11, 9}},
        Row{8, 2, 16, 1, 2, 58.5, {23, 21, 19, 17, 15, 13, 11, 9}}, Row{2, 2, 4, 1, 1, 9, {5, 3}},
        Row{4, 2, 8, 1, 1, 19, {11, 9, 7, 5}}}) {
    const Played result = played(timetable("interleaved", {p, v, m, {}}), whole(forward, backward));
    CHECK(static_cast<double>(result.makespan()) == v * makespan);
    CHECK(result.peaks() == peaks);
  }
}

TEST_CASE("ZB-H1 and ZB-H2 leave (p-1)(F+B-W) and (p-1)(F+B-2W) of every rank's span idle") {
  struct Row {
    int p, m, forward, input, weight, makespan_1, bubble_1, makespan_2, bubble_2;
  };
  // H1's makespan is m(F+B+W) + bubble. H2's gain is in the spans: the makespan keeps the shift
  // (p-1)F between the first and the last rank, m(F+B+W) + (p-1)F.
  for (const Row& row :
       {Row{4, 8, 1, 1, 1, 27, 3, 27, 0}, Row{8, 24, 1, 1, 1, 79, 7, 79, 0},
        Row{4, 12, 10, 11, 9, 396, 36, 390, 9}, Row{4, 12, 12, 13, 8, 447, 51, 432, 27}}) {
    const ClockCosts costs{row.forward, row.input, row.weight};
    const Played h1 = played(timetable("zb-h1", {row.p, 1, row.m, {}}), costs);
    const Played h2 = played(timetable("zb-h2", {row.p, 1, row.m, {}}), costs);
    CHECK(h1.makespan() == row.makespan_1);
    CHECK(h1.bubble() == row.bubble_1);
    CHECK(h1.peaks() == std::vector<int>(row.p, row.p));
    CHECK(h2.makespan() == row.makespan_2);
    CHECK(h2.bubble() == row.bubble_2);
    CHECK(h2.peaks() == std::vector<int>(row.p, 2 * row.p - 1));
  }
}

TEST_CASE("ZB-H1's rank s runs weight cells from its (s+1)-th backward cell on") {
  const Timetable h1 = timetable("zb-h1", {3, 1, 4, {}});
  CHECK(text_of(h1.ranks[0]) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(text_of(h1.ranks[1]) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  CHECK(text_of(h1.ranks[2]) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  const Timetable h2 = timetable("zb-h2", {2, 1, 4, {}});
  CHECK(text_of(h2.ranks[0]) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(text_of(h2.ranks[1]) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST_CASE("ZB-V, V-Half and V-Min are no longer and hold no more than the authors' scheduler's") {
  struct Bound {
    int makespan, bubble, peak;
  };
  struct Row {
    int p, m;
    Bound zb_v, v_half, v_min;
  };
  // The zero-bubble repository's scheduler, played by a clock of its own; F = B = W = 1 for half a
  // stage, busy 6m. Peaks in half stages: p, floor((p+2)/2) and floor((p+4)/3) stages.
  const auto check = [](const Timetable& timetable, const Bound& bound) {
    const Played result = played(timetable, {1, 1, 1});
    CHECK(result.makespan() <= bound.makespan);
    CHECK(result.bubble() <= bound.bubble);
    CHECK(result.peak() <= bound.peak);
  };
  for (const Row& row : {Row{4, 8, {51, 0, 8}, {53, 5, 6}, {59, 11, 4}},
                         Row{4, 12, {75, 0, 8}, {77, 5, 6}, {83, 11, 4}},
                         Row{4, 16, {99, 0, 8}, {101, 5, 6}, {107, 11, 4}},
                         Row{8, 24, {151, 0, 16}, {161, 17, 10}, {171, 27, 8}},
                         Row{8, 32, {199, 0, 16}, {209, 17, 10}, {219, 27, 8}}}) {
    INFO("p " << row.p << ", m " << row.m);
    check(timetable("zb-v", {row.p, 2, row.m, {}}), row.zb_v);
    check(timetable("v-half", {row.p, 2, row.m, {}}), row.v_half);
    check(timetable("v-min", {row.p, 2, row.m, {}}), row.v_min);
  }
}

TEST_CASE("V-Half and V-Min are no longer than their building blocks repeated") {
  // One begins every 6 cells; its last are B and W of chunk 0 on rank 0. B begins at 6p + I - 2 in
  // V-Half, I = 3 for even p, and at 4p + I - 1 in V-Min, I = 2 where 3 divides p.
  const auto makespan = [](const Timetable& timetable) {
    return played(timetable, {1, 1, 1}).makespan();
  };
  for (int p = 2; p <= 12; ++p) {
    INFO("p " << p);
    const int m = 2 * p;
    const auto half = makespan(timetable("v-half", {p, 2, m, {}}));
    const auto least = makespan(timetable("v-min", {p, 2, m, {}}));
    CHECK(half <= 6 * (m - 1) + 6 * p + (p % 2 == 0 ? 3 : 0));
    CHECK(least <= 6 * (m - 1) + 4 * p + (p % 3 == 0 ? 2 : 0) + 1);
    CHECK(makespan(timetable("zb-v", {p, 2, m, {}})) <= half);
    CHECK(half <= least);
    // For 2, 3 and 5 ranks the two limits are one.
    if ((p + 2) / 2 == (p + 4) / 3) CHECK(half == least);
  }
}

TEST_CASE("memory-bounded schedules keep their bound for every number of ranks and any costs") {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {1, 3, p, 2 * p}) {
      for (const CellCosts& costs :
           {CellCosts{1, 1, 1}, CellCosts{10, 11, 9}, CellCosts{2, 3, 1}}) {
        INFO("p " << p << ", m " << m);
        const ClockCosts clock{costs.forward, costs.input, costs.weight};
        CHECK(played(timetable("zb-v", {p, 2, m, costs}), clock).peak() <= 2 * p);
        CHECK(played(timetable("v-half", {p, 2, m, costs}), clock).peak() <= 2 * ((p + 2) / 2));
        CHECK(played(timetable("v-min", {p, 2, m, costs}), clock).peak() <= 2 * ((p + 4) / 3));
      }
    }
  }
}

TEST_CASE("Chimera's two directions fill each other's bubbles") {
  struct Row {
    int p, equal, twice;
  };
  // m = p: 2m + p - 2 where B = F and 3m + 2(p-2) where B = 2F; 1F1B: 14, 22, 30 and 21, 33, 45.
  for (const auto& [p, equal, twice] : {Row{4, 10, 16}, Row{6, 16, 26}, Row{8, 22, 36}}) {
    CHECK(played(timetable("chimera", {p, 1, p, {1, 1, 0}}), whole(1, 1)).makespan() == equal);
    CHECK(played(timetable("chimera", {p, 1, p, {1, 2, 0}}), whole(1, 2)).makespan() == twice);
  }
  // From p/2 + 1 at the ends to p in the middle.
  const auto peaks = [](int p, int backward) {
    return played(timetable("chimera", {p, 1, p, {1, backward, 0}}), whole(1, backward)).peaks();
  };
  for (const int backward : {1, 2}) {
    CHECK(peaks(4, backward) == std::vector<int>{3, 4, 4, 3});
    CHECK(peaks(6, backward) == std::vector<int>{4, 5, 6, 6, 5, 4});
  }
  CHECK(peaks(8, 1) == std::vector<int>{5, 6, 7, 8, 8, 7, 6, 5});
}

TEST_CASE("Chimera's concatenated units close up, and no rank holds more than p micro-batches") {
  for (const int p : {2, 4, 6, 8}) {
    for (int units = 2; units <= 5; ++units) {
      INFO("p " << p << ", units " << units);
      const int m = units * p;
      const Played equal = played(timetable("chimera", {p, 1, m, {1, 1, 0}}), whole(1, 1));
      // Bubble ratio (p-2)/(2m+p-2): the bubbles of one unit only.
      CHECK(equal.makespan() == 2 * m + p - 2);
      CHECK(equal.peak() <= p);
      const Played twice = played(timetable("chimera", {p, 1, m, {1, 2, 0}}), whole(1, 2));
      CHECK(twice.makespan() <= units * (3 * p + 2 * (p - 2)));
      CHECK(twice.peak() <= p);
    }
  }
}

TEST_CASE("combined 1F1B runs each forward cell beside the backward cell of another micro-batch") {
  // Megatron-Core's docstring of the schedule without stages, then two ranks.
  const Timetable alone = timetable("combined-1f1b", {1, 1, 4, {}});
  CHECK(text_of(alone.ranks[0]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(alone.together.size() == 3);
  const Timetable two = timetable("combined-1f1b", {2, 1, 4, {}});
  CHECK(text_of(two.ranks[0]) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(text_of(two.ranks[1]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  REQUIRE(two.together.size() == 4);
  CHECK(two.together[0] ==
        std::pair{Cell{0, 3, CellPass::forward}, Cell{0, 0, CellPass::backward}});
}

TEST_CASE("combined 1F1B has 1F1B's bubble where a pair takes as long as its halves") {
  for (const int p : {1, 2, 4, 8}) {
    for (const int v : {1, 2, 3}) {
      CAPTURE(p, v);
      const int m = 4 * p;
      // A rank has m v cells of either kind.
      CHECK(played(timetable("combined-1f1b", {p, v, m, {}}), {1, 2, 0, 3}).makespan() ==
            3 * (m * v + p - 1));
    }
  }
  // One rank runs v cells of either kind alone, and m v - v pairs.
  CHECK(played(timetable("combined-1f1b", {1, 3, 5, {}}), {1, 2, 0, 2}).makespan() ==
        3 * 3 + 12 * 2);
}

TEST_CASE("DualPipe runs forward and backward cells in pairs from both ends") {
  // P = 2, m = 4: both ranks are in the middle, so the first pair is not overlapped:
  // F0 F1 | F0 B1, F1&B0 | B1 B0, the last of which leaves its weight cell for the end.
  const Timetable small = timetable("dualpipe", {2, 1, 4, {}});
  CHECK(text_of(small.ranks[0]) == "F0 F2 F1 B2 F3 B0 B3 B1 W1");
  CHECK(text_of(small.ranks[1]) == "F2 F0 F3 B0 F1 B2 B1 B3 W3");
  REQUIRE(small.together.size() == 2);
  CHECK(small.together[0] ==
        std::pair{Cell{1, 3, CellPass::forward}, Cell{0, 0, CellPass::backward}});
}

TEST_CASE("DualPipe's bubbles are (p/2-1)(F&B + B - 3W) where a pair takes as long as its halves") {
  const ClockCosts costs{1, 1, 1, 3};
  const Played four = played(timetable("dualpipe", {4, 1, 8, {}}), costs);
  CHECK(four.makespan() == 26);
  CHECK(four.bubbles() == Durations{2, 1, 1, 2});
  const Played eight = played(timetable("dualpipe", {8, 1, 20, {}}), costs);
  CHECK(eight.makespan() == 66);
  CHECK(eight.bubbles() == Durations{6, 5, 4, 3, 3, 4, 5, 6});
  CHECK(eight.peak() == 9);
  CHECK(played(timetable("dualpipe", {8, 1, 32, {}}), costs).makespan() == 102);
}

TEST_CASE(
    "DualPipe's bubbles are smaller than the formula where pairs are shorter than their halves") {
  // The formula gives 3 * (2 + 2 - 3) = 3 and 3 * (24 + 20 - 27) = 51; B in it is the whole pass.
  const Timetable pairs = timetable("dualpipe", {8, 1, 20, {}});
  CHECK(played(pairs, {1, 1, 1, 2}).bubble() == 1);
  CHECK(played(pairs, {10, 11, 9, 24}).bubble() == 36);
}

TEST_CASE("DualPipeV does the same on half of the ranks, each with both halves of the work") {
  const ClockCosts costs{1, 1, 1, 3};
  CHECK(played(timetable("dualpipe-v", {2, 2, 4, {}}), costs).makespan() == 26);
  const Played four = played(timetable("dualpipe-v", {4, 2, 10, {}}), costs);
  CHECK(four.makespan() == 66);
  CHECK(four.bubbles() == Durations{6, 5, 4, 3});
  CHECK(four.peak() == 9);
  CHECK(played(timetable("dualpipe-v", {4, 2, 16, {}}), costs).makespan() == 102);
}

TEST_CASE("Hanayo's waves divide the bubble, and no rank holds more than p micro-batches") {
  struct Row {
    int p, waves;
    double greedy;
  };
  // Upper bounds: a greedy list schedule with m = p, F = 1 and B = 2 of a whole rank; busy 3p.
  // Closed form: 3p + (2p-2)/W.
  for (const auto& [p, waves, greedy] : {Row{4, 1, 18.0}, Row{4, 2, 15.25}, Row{4, 4, 13.625},
                                         Row{8, 1, 38}, Row{8, 2, 31.5}, Row{8, 4, 27.75}}) {
    const int chunks = 2 * waves;
    const Played result = played(timetable("hanayo", {p, chunks, p, {1, 2, 0}}), whole(1, 2));
    CHECK(static_cast<double>(result.makespan()) <= greedy * chunks);
    CHECK(result.makespan() == 3 * p * chunks + 2 * (2 * p - 2));
    CHECK(result.peak() <= p * chunks);
    for (const int m : {2 * p, 4 * p}) {
      const Played more = played(timetable("hanayo", {p, chunks, m, {1, 2, 0}}), whole(1, 2));
      CHECK(more.peak() <= p * chunks);
      CHECK(more.makespan() < 3 * (m + p - 1) * chunks);  // 1F1B's
    }
  }
}

TEST_CASE("the list scheduler foresees what the clock finds") {
  for (const int p : {2, 3, 5}) {
    for (const bool split : {false, true}) {
      Workload workload{Placement::wave, {p, 4, 6, {3, 4, 2}}, split, {}, {}};
      workload.limits.assign(p, safe_limits(4, 6));
      const auto listed = list_schedule(workload, [](const auto& candidate) {
        return Key{static_cast<int>(candidate.cell.pass), candidate.turn, 0};
      });
      REQUIRE(listed.has_value());
      const Played result = played(listed->timetable, {3, 4, 2});
      CHECK(result.makespan() == listed->makespan);
      CHECK(result.bubble() == listed->bubble);
      CHECK(result.peak() <= 6);
    }
  }
}

TEST_CASE("a kept order that waits for itself has no list schedule") {
  Workload workload{Placement::loop, {1, 1, 1, {}}, false, {{}}, {}};
  workload.kept_order = {{{0, 0, CellPass::backward}, {0, 0, CellPass::forward}}};
  const auto first = [](const Candidate&) { return Key{}; };
  CHECK_FALSE(list_schedule(workload, first).has_value());
  workload.kept_order = {{{0, 0, CellPass::forward}, {0, 0, CellPass::backward}}};
  CHECK(list_schedule(workload, first)->makespan == 3);  // F + B + W
}

}  // namespace stratagem::strategies::timetables_test
