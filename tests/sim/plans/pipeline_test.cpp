// Pipeline schedules through the lowering and the engine: makespans, bubbles, micro-batches in
// flight and versions of the weights, exact with unit costs and a network that takes no time.
#include <map>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::strategies {
Strategy pipeline();  // a row of the table
}

namespace stratagem::sim {

namespace {

std::string strategy(const std::string& schedule, int ranks, int chunks = 0) {
  return "{\"pipeline\": " + std::to_string(ranks) + ", \"schedule\": \"" + schedule + "\"" +
         (chunks > 0 ? ", \"chunks\": " + std::to_string(chunks) : "") + "}";
}

std::vector<int> in_flight(const UnitPipeline& pipeline, int ranks) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(pipeline.in_flight(rank));
  return result;
}

std::vector<double> bubbles(const UnitPipeline& pipeline, int ranks) {
  std::vector<double> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(pipeline.bubble(rank));
  return result;
}

struct Case {
  int p, m, forward, backward, makespan;
};

}  // namespace

TEST_CASE("the makespan of GPipe and 1F1B is (m + p - 1)(F + B)") {
  // The last stage begins after p - 1 forward cells, works m (F + B) without a gap, and the last
  // micro-batch then goes back through p - 1 backward cells. Narayanan et al., arXiv:2104.04473,
  // section 2.2.
  for (const Case& c : {Case{4, 8, 1, 2, 33}, Case{4, 4, 1, 1, 14}, Case{8, 16, 1, 2, 69},
                        Case{4, 2, 1, 2, 15}, Case{8, 32, 3, 5, 312}}) {
    CHECK((c.m + c.p - 1) * (c.forward + c.backward) == c.makespan);
    for (const char* schedule : {"gpipe", "1f1b"}) {
      INFO(schedule << " p=" << c.p << " m=" << c.m);
      const UnitPipeline pipeline(strategy(schedule, c.p), c.p, c.m,
                                  {c.forward, c.backward - 1, 1});
      // The first stage begins first and ends last, so the next iteration follows without overlap.
      CHECK(pipeline.timeline.iteration_ends == std::vector<Instant>{{c.makespan * unit},
                                                                     {2 * c.makespan * unit},
                                                                     {3 * c.makespan * unit}});
    }
  }
}

TEST_CASE("the bubble of GPipe and 1F1B is (p - 1) / (m + p - 1) of the period") {
  // Every device works m (F + B) of a period of (m + p - 1)(F + B).
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const UnitPipeline pipeline(strategy(schedule, 4), 4, 8, {1, 1, 1});
    const Metrics result = metrics(pipeline.program, pipeline.timeline);
    CHECK(close(result.iteration_time, Seconds{33 * unit * 1e-12}, 1e-12));
    CHECK(close(result.bubble_fraction, 3.0 / 11, 1e-12));
    CHECK(result.exposed_communication == 0_s);
  }
}

TEST_CASE("GPipe keeps all micro-batches in flight, 1F1B as many as there are stages left") {
  for (const int m : {4, 8}) {
    CHECK(in_flight({strategy("gpipe", 4), 4, m, {1, 1, 1}}, 4) == std::vector<int>(4, m));
    CHECK(in_flight({strategy("1f1b", 4), 4, m, {1, 1, 1}}, 4) == std::vector<int>{4, 3, 2, 1});
  }
  CHECK(in_flight({strategy("1f1b", 4), 4, 2, {1, 1, 1}}, 4) == std::vector<int>{2, 2, 2, 1});
}

TEST_CASE("interleaving v chunks divides the bubble by v: makespan (m + (p-1)/v)(F + B)") {
  // Narayanan et al., arXiv:2104.04473, section 2.2; a chunk takes 1/v of a stage, so costs are
  // scaled by 2 v. Peaks in chunks: min(m v, 2(p-1-s) + (v-1) p + 1).
  struct Interleaved {
    int p, v, m, forward, backward;
    double makespan;
    std::vector<int> peaks;
  };
  for (const Interleaved& c :
       {Interleaved{4, 2, 4, 1, 2, 16.5, {8, 8, 7, 5}},
        Interleaved{4, 2, 8, 1, 2, 28.5, {11, 9, 7, 5}},
        Interleaved{4, 3, 12, 1, 2, 39, {15, 13, 11, 9}},
        Interleaved{8, 2, 16, 1, 2, 58.5, {23, 21, 19, 17, 15, 13, 11, 9}},
        Interleaved{2, 2, 4, 1, 1, 9, {5, 3}}, Interleaved{4, 2, 8, 1, 1, 19, {11, 9, 7, 5}}}) {
    INFO("p=" << c.p << " v=" << c.v << " m=" << c.m);
    const UnitPipeline pipeline(strategy("interleaved", c.p, c.v), c.p * c.v, c.m,
                                {2 * c.forward, c.backward, c.backward});
    CHECK(pipeline.makespan() == 2 * c.v * c.makespan);
    CHECK(in_flight(pipeline, c.p) == c.peaks);
  }
}

TEST_CASE("splitting B and W shortens the bubble to (p-1)(F + B - W) and to (p-1)(F + B - 2W)") {
  // Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, table 2. The makespan of one iteration
  // alone is not shorter; the period of many is, since the first stage begins the next iteration
  // before the last stage has ended this one.
  struct Split {
    int p, m, forward, input, weight;
    double h1_makespan, h1_bubble, h2_makespan, h2_bubble;
  };
  for (const Split& c :
       {Split{4, 8, 1, 1, 1, 27, 3, 27, 0}, Split{8, 24, 1, 1, 1, 79, 7, 79, 0},
        Split{4, 12, 10, 11, 9, 396, 36, 390, 9}, Split{4, 12, 12, 13, 8, 447, 51, 432, 27}}) {
    INFO("p=" << c.p << " m=" << c.m << " F=" << c.forward);
    const int busy = c.m * (c.forward + c.input + c.weight);
    const auto worst = [&](const UnitPipeline& one) {
      const std::vector<double> all = bubbles(one, c.p);
      return *std::ranges::max_element(all);
    };
    const UnitCosts costs{c.forward, c.input, c.weight};
    const UnitPipeline h1(strategy("zb-h1", c.p), c.p, c.m, costs);
    CHECK(worst(h1) == c.h1_bubble);
    CHECK(h1.makespan() == c.h1_makespan);
    CHECK(h1.period() == busy + c.h1_bubble);
    CHECK(in_flight(h1, c.p) == std::vector<int>(c.p, c.p));
    const UnitPipeline h2(strategy("zb-h2", c.p), c.p, c.m, costs);
    CHECK(worst(h2) == c.h2_bubble);
    CHECK(h2.makespan() == c.h2_makespan);
    CHECK(h2.period() == busy + c.h2_bubble);
    CHECK(in_flight(h2, c.p) == std::vector<int>(c.p, 2 * c.p - 1));
  }
}

TEST_CASE("V-shaped schedules trade memory for bubbles") {
  // Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; figures of an
  // independent simulation, F = B = W = 1 for each of two chunks; bubbles are of a rank's own span,
  // peaks in half-stages. They bound ours from above.
  struct V {
    int p, m;
    double span_v, makespan_v, half, half_bubble, min, min_bubble;
  };
  for (const V& c : {V{4, 8, 48, 51, 53, 5, 59, 11}, V{4, 12, 72, 75, 77, 5, 83, 11},
                     V{4, 16, 96, 99, 101, 5, 107, 11}, V{8, 24, 144, 151, 161, 17, 171, 27},
                     V{8, 32, 192, 199, 209, 17, 219, 27}}) {
    const auto check = [&](const std::string& name, double makespan, double bubble, int peak) {
      INFO(name << " p=" << c.p << " m=" << c.m);
      const UnitPipeline pipeline(strategy(name, c.p), 2 * c.p, c.m, {1, 1, 1});
      CHECK(pipeline.makespan() <= makespan);
      for (const double one : bubbles(pipeline, c.p)) CHECK(one <= bubble);
      for (const int one : in_flight(pipeline, c.p)) CHECK(one <= peak);
    };
    check("zb-v", c.makespan_v, 0, 2 * c.p);
    check("v-half", c.half, c.half_bubble, 2 * ((c.p + 2) / 2));
    check("v-min", c.min, c.min_bubble, 2 * ((c.p + 4) / 3));
  }
}

TEST_CASE("Chimera with D micro-batches takes 2D + D - 2 slots, 3D + 2(D - 2) where B = 2F") {
  // Li & Hoefler, Chimera, SC 2021, section 3.1. Peaks in micro-batches of both directions.
  const std::map<int, std::vector<int>> peaks = {{4, {3, 4, 4, 3}}, {6, {4, 5, 6, 6, 5, 4}}};
  for (const int d : {4, 6, 8}) {
    INFO("D=" << d);
    const UnitPipeline equal(strategy("chimera", d), d, d, {1, 1, 0});
    CHECK(equal.makespan() == 2 * d + d - 2);
    const UnitPipeline twice(strategy("chimera", d), d, d, {1, 1, 1});
    CHECK(twice.makespan() == 3 * d + 2 * (d - 2));
    if (d < 8) CHECK(in_flight(equal, d) == peaks.at(d));
  }
}

TEST_CASE("a hand-written Chimera of two micro-batches takes nnScaler's 16 slots") {
  // Its artifact's order on 4 stages with B = 2F: micro-batch 0 goes down from device 0 (F at 0, 1,
  // 2, 3, B at 4, 6, 8, 10), micro-batch 1 up from device 3 (F at 2, 3, 4, 6, B at 8, 10, 12, 14).
  using placement::CellPass;
  const model::Graph graph = chain(4);
  strategies::Plan plan(graph);
  plan.micro_batches = 2;
  strategies::pipeline().apply(plan, {.pipeline = 4, .schedule = "chimera"});
  const auto f = [](int stage, int m) { return placement::Cell{stage, m, CellPass::forward}; };
  const auto b = [](int stage, int m) { return placement::Cell{stage, m, CellPass::backward}; };
  plan.chain({f(0, 0), f(3, 1), b(3, 1), b(0, 0)});
  plan.chain({f(1, 0), f(2, 1), b(1, 0), b(2, 1)});
  plan.chain({f(2, 0), f(1, 1), b(2, 0), b(1, 1)});
  plan.chain({f(0, 1), f(3, 0), b(3, 0), b(0, 1)});
  CHECK(UnitPipeline(lowering::lower(plan, {}), {1, 1, 1}).makespan() == 16);
}

TEST_CASE("DualPipe and DualPipeV bubble as their ranks' orders say") {
  // DeepSeek-AI, DualPipe (README): (P/2 - 1)(F&B + B - 3W) on the worst rank where F&B takes as
  // long as F and B; per rank and for other costs from an independent simulation of the same order.
  const UnitPipeline four(strategy("dualpipe", 4), 4, 8, {1, 1, 1});
  CHECK(four.makespan() == 26);
  CHECK(bubbles(four, 4) == std::vector<double>{2, 1, 1, 2});
  const UnitPipeline eight(strategy("dualpipe", 8), 8, 20, {1, 1, 1});
  CHECK(eight.makespan() == 66);
  CHECK(bubbles(eight, 8) == std::vector<double>{6, 5, 4, 3, 3, 4, 5, 6});
  CHECK(std::ranges::max(in_flight(eight, 8)) == 9);
  CHECK(UnitPipeline(strategy("dualpipe", 8), 8, 32, {1, 1, 1}).makespan() == 102);
  CHECK(UnitPipeline(strategy("dualpipe-v", 2), 4, 4, {1, 1, 1}).makespan() == 26);
  const UnitPipeline v(strategy("dualpipe-v", 4), 8, 10, {1, 1, 1});
  CHECK(v.makespan() == 66);
  CHECK(bubbles(v, 4) == std::vector<double>{6, 5, 4, 3});
  CHECK(std::ranges::max(in_flight(v, 4)) == 9);
  CHECK(UnitPipeline(strategy("dualpipe-v", 4), 8, 16, {1, 1, 1}).makespan() == 102);
}

TEST_CASE("3F1B makes the makespans of its table") {
  // An independent simulation of the order of section 6.1; b is the full backward cell. Up to four
  // stages the steady state has no bubble; at eight the latency of a pass, 8 f, exceeds 3 f + b.
  struct Row {
    int p;
    std::map<int, std::vector<double>> by_m;  // b = 1, 2, 3
  };
  for (const Row& row :
       {Row{2, {{8, {34, 43, 52}}, {16, {66, 83, 100}}, {32, {130, 163, 196}}}},
        Row{4, {{8, {42, 52, 63}}, {16, {74, 92, 111}}, {32, {138, 172, 207}}}},
        Row{8, {{8, {72, 83, 94}}, {16, {122, 135, 148}}, {32, {216, 235, 254}}}}}) {
    for (const auto& [m, makespans] : row.by_m) {
      for (int b = 1; b <= 3; ++b) {
        INFO("p=" << row.p << " m=" << m << " b=" << b);
        const UnitPipeline pipeline(strategy("3f1b", row.p), row.p, m, {1, b, 0}, 3);
        CHECK(pipeline.makespan() == makespans[b - 1]);
        if (b > 1) continue;
        for (int stage = 0; stage < row.p; ++stage)
          CHECK(pipeline.in_flight(stage) == std::min(m, row.p - stage));
      }
    }
  }
}

TEST_CASE("the interlaced pipeline has the bubble of 1F1B alone, however long its ends take") {
  // Each micro-batch takes te four times on all ranks (embedding and head, forward and backward)
  // and tf + tb on one. The last rank is idle while the first F passes the others, and while the
  // last B does: 1F1B's bubble. Of an odd number of ranks the last runs F first, before B wants it.
  struct Times {
    int te, tf, tb;
  };
  for (const int p : {2, 3, 4, 5, 6, 8}) {
    for (const Times& t : {Times{1, 1, 3}, Times{1, 1, 1}, Times{2, 1, 2}, Times{1, 3, 6}}) {
      INFO("p=" << p << " te=" << t.te << " tf=" << t.tf << " tb=" << t.tb);
      const UnitCosts costs{.forward = t.tf, .input = t.tb, .weight = 0, .end = t.te};
      const int bubble = (p - 1) * (t.tf + t.tb) + (p % 2 == 1 ? t.tf : 0);
      for (const int m : {2 * p, 2 * p + 1}) {
        const UnitPipeline pipeline(strategy("interlaced", p), p, m, costs);
        CHECK(pipeline.makespan() == m * (4 * t.te + t.tf + t.tb) + bubble);
      }
    }
  }
}

TEST_CASE("the interlaced pipeline is as fast as the one that nnScaler found, in its memory") {
  // Its schedule file for four stages (microsoft/nnscaler, cupilot/mllm.4stages.sched.json): B
  // takes three spans, all else one; 60 spans for six micro-batches, of which every rank is busy
  // 48. From F to B of a stage 6, 5, 4 and 3 micro-batches are in flight there: its warm-up runs F
  // as early as it can. The part that it repeats, spans 27 to 34, has 6, 4, 3 and 1.
  const UnitPipeline pipeline(strategy("interlaced", 4), 4, 6,
                              {.forward = 1, .input = 3, .weight = 0, .end = 1});
  CHECK(pipeline.makespan() == 60);
  CHECK(pipeline.in_flight(0, 1, 4) == 6);
  const std::vector<int> repeated = {6, 4, 3, 1};
  for (int rank = 0; rank < 4; ++rank) CHECK(pipeline.in_flight(rank, 1, 4) == repeated[rank]);
  // Another micro-batch takes what is busy: four ends, F and B.
  const UnitPipeline more(strategy("interlaced", 4), 4, 7,
                          {.forward = 1, .input = 3, .weight = 0, .end = 1});
  CHECK(more.makespan() == 60 + 8);
}

TEST_CASE("the ends of a model may stand apart from the stages") {
  // Where they take no time they cost none, wherever they stand. Embeddings and head that take te =
  // 1, each forward and backward, delay a micro-batch by 4 te, and the last rank by as much a
  // micro-batch where both stand there.
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    INFO(schedule);
    const std::string base = "{\"pipeline\": 4, \"schedule\": \"" + schedule + "\"";
    const UnitPipeline plain(base + "}", 4, 8, {1, 1, 1});
    const UnitPipeline apart(base + ", \"embedding\": 3, \"head\": 0}", 4, 8, {1, 1, 1});
    CHECK(apart.makespan() == plain.makespan());
    const UnitPipeline all(base + ", \"embedding\": \"all\", \"head\": \"all\"}", 4, 8, {1, 1, 1});
    CHECK(all.makespan() == plain.makespan());
    const UnitPipeline busy(base + ", \"embedding\": 3}", 4, 8, {1, 1, 1, 1});
    CHECK(busy.makespan() >= plain.makespan() + 4);
    CHECK(busy.makespan() <= plain.makespan() + 4 * 8);
  }
}

TEST_CASE("TeraPipe's slices follow each other: sum t + (p - 1) max t forward") {
  // Li et al., TeraPipe, ICML 2021, section 3.2: the slices of one micro-batch pass from stage to
  // stage one by one; here a slice takes as long as it has tokens, and only forward.
  struct Slices {
    int p;
    std::vector<int> tokens;
    double forward;
  };
  for (const Slices& c : {Slices{4, {3, 2, 2, 1}, 17}, Slices{8, {5, 4, 4, 3, 3, 2}, 56}}) {
    int total = 0;
    std::string list;
    for (const int t : c.tokens) {
      list += (list.empty() ? "" : ", ") + std::to_string(t);
      total += t;
    }
    const model::Graph graph = model::gpt(
        {.layers = c.p, .hidden = 8, .heads = 1, .sequence = total, .vocabulary = 16, .batch = 1});
    const std::string strategy = "{\"pipeline\": " + std::to_string(c.p) +
                                 ", \"schedule\": \"gpipe\", \"token_slices\": [" + list + "]}";
    const program::Program program = UnitPipeline::lowered(strategy, graph, 1);
    // The QKV product of a layer has as many rows as the slice has tokens.
    const Prices prices = price(program, [](const program::Task& task) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      const std::int64_t rows = task.name == "attention.qkv" ? kernel->m : 0;
      return Price{.device = {rows * unit}};
    });
    const Folding folding = fold(program, instant_cluster(c.p), ideal_network(), false);
    const Timeline timeline = run(program, folding, prices, 1);
    CHECK(timeline.iteration_ends.front().picoseconds == c.forward * unit);
  }
}

TEST_CASE("ranks that share a device share its time and its memory") {
  // All ranks on one device: no bubble, m p (F + B); the micro-batches in flight of all of them.
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1", "interleaved"}) {
    INFO(schedule);
    const std::string base = "{\"pipeline\": 4, \"schedule\": \"" + schedule + "\"";
    const int layers = schedule == "interleaved" ? 8 : 4;
    const UnitPipeline one(base + ", \"ranks_per_device\": 4}", layers, 8, {1, 1, 1});
    REQUIRE(one.program.devices.size() == 1);
    CHECK(one.makespan() == 3 * 8 * layers);
    CHECK(one.bubble(0) == 0);
    // Two on each of two devices: as long as a device is busy at least, at most as all four apart
    // but half as fast.
    const UnitPipeline two(base + ", \"ranks_per_device\": 2}", layers, 8, {1, 1, 1});
    REQUIRE(two.program.devices.size() == 2);
    CHECK(two.makespan() >= 3 * 8 * layers / 2);
    const UnitPipeline four(base + "}", layers, 8, {1, 1, 1});
    CHECK(two.makespan() <= 2 * four.makespan());
    if (schedule == "gpipe") {
      CHECK(one.in_flight(0) == 4 * 8);
    }
  }
}

TEST_CASE("BPipe takes 1F1B's time and no rank holds more than ceil((p+2)/2) micro-batches") {
  // Stages s and p-1-s of 1F1B hold p-s and s+1. Kim et al., BPipe, ICML 2023, section 3.
  for (const auto& [p, most] : std::map<int, int>{{4, 3}, {8, 5}, {16, 9}}) {
    for (const int m : {p, 2 * p, 3 * p}) {
      INFO("p=" << p << " m=" << m);
      const UnitPipeline pipeline(strategy("bpipe", p), p, m, {1, 1, 1});
      CHECK(pipeline.makespan() == 3 * (m + p - 1));
      int worst = 0;
      for (int rank = 0; rank < p; ++rank) worst = std::max(worst, pipeline.held(rank));
      CHECK(worst == most);
      CHECK(pipeline.held(0) < pipeline.in_flight(0));
    }
  }
}

TEST_CASE("PipeDream has no bubble and keeps p - s versions of the weights") {
  for (const int p : {2, 4}) {
    const UnitPipeline pipeline(UnitPipeline::lowered(strategy("pipedream", p), chain(p), 1),
                                {1, 1, 1}, 12);
    INFO("p=" << p);
    CHECK(pipeline.period() == 3);
    for (int s = 0; s < p; ++s) {
      const program::Sequence& sequence = pipeline.program.sequences[s];
      // F(i) on stage s reads version max(0, i - (p-1-s)), and so does its backward cell.
      for (const program::Call& call : sequence.calls) {
        if (call.segment >= 0) CHECK(call.versions_behind == p - 1 - s);
      }
      Bytes parameters;
      for (const program::Resident& one : sequence.residents) {
        if (one.category == program::Category::parameters) parameters += one.bytes;
      }
      const Bytes shift = s == 0 ? 16_B : 0_B;  // before the chain
      CHECK(parameters == (p - s) * (128_B + shift));
    }
  }
}

TEST_CASE("with vertical sync all stages read the version that the first one read") {
  // F of iteration i reads version max(0, i - (p-1)) everywhere (Narayanan et al., SOSP 2019,
  // section 3.3); a newer one waits on stage s until that micro-batch arrives: p versions on every
  // stage.
  const int p = 4;
  const UnitPipeline pipeline(UnitPipeline::lowered(strategy("pipedream-vertical", p), chain(p), 1),
                              {1, 1, 1}, 12);
  CHECK(pipeline.period() == 3);
  for (int s = 0; s < p; ++s) {
    for (const program::Call& call : pipeline.program.sequences[s].calls) {
      if (call.segment >= 0) CHECK(call.versions_behind == p - 1);
    }
    Bytes parameters;
    for (const program::Resident& one : pipeline.program.sequences[s].residents) {
      if (one.category == program::Category::parameters) parameters += one.bytes;
    }
    CHECK(parameters == p * (128_B + (s == 0 ? 16_B : 0_B)));
  }
}

TEST_CASE("PipeDream-2BW reads the weights of the iteration before and keeps two versions") {
  const int p = 4;
  for (const int m : {4, 6}) {
    const UnitPipeline pipeline(UnitPipeline::lowered(strategy("pipedream-2bw", p), chain(p), m),
                                {1, 1, 1}, 9);
    CHECK(pipeline.period() == 3 * m);
    for (int s = 0; s < p; ++s) {
      for (const program::Call& call : pipeline.program.sequences[s].calls) {
        if (call.segment >= 0) CHECK(call.versions_behind == 1);
      }
      Bytes parameters;
      for (const program::Resident& one : pipeline.program.sequences[s].residents) {
        if (one.category == program::Category::parameters) parameters += one.bytes;
      }
      CHECK(parameters == 2 * (128_B + (s == 0 ? 16_B : 0_B)));
    }
  }
}

TEST_CASE("Hanayo's waves shorten the makespan at no more than 1F1B's memory") {
  // Upper bounds from an independent greedy simulation, N = P, B = 2F, in units of F of a stage; a
  // chunk of W waves takes 1/(2W) of it.
  const std::map<int, std::map<int, double>> bounds = {{4, {{1, 18}, {2, 15.25}, {4, 13.625}}},
                                                       {8, {{1, 38}, {2, 31.5}, {4, 27.75}}}};
  for (const auto& [p, by_waves] : bounds) {
    for (const auto& [waves, bound] : by_waves) {
      INFO("p=" << p << " waves=" << waves);
      const int chunks = 2 * waves;
      const UnitPipeline pipeline(strategy("hanayo", p, chunks), p * chunks, p, {1, 1, 1});
      CHECK(pipeline.makespan() <= bound * chunks);
      for (const int peak : in_flight(pipeline, p)) CHECK(peak <= p * chunks);
    }
  }
}

}  // namespace stratagem::sim
