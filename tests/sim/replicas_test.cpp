// PipeDream with stages in several copies that take turns: time, micro-batches in flight and
// versions of the weights, with unit costs and a network that takes no time.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/copy_numbers.hpp"
#include "tests/sim/round_robin_clock.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {

namespace {

int sum(const Numbers& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0); }

/// A stage has as many layers as `layers` says, each of which takes as long.
program::Program lowered(const std::string& schedule, const Numbers& copies, const Numbers& layers,
                         int micro_batches) {
  return UnitPipeline::lowered("{\"pipeline\": " + std::to_string(copies.size()) +
                                   ", \"schedule\": \"" + schedule + "\", \"layers_per_stage\": " +
                                   list(layers) + ", \"replicas_per_stage\": " + list(copies) + "}",
                               chain(sum(layers)), micro_batches);
}

RoundRobin clock_of(const Numbers& copies, const Numbers& layers, int micro_batches,
                    const UnitCosts& costs, int iterations) {
  RoundRobin pipeline{.copies = copies,
                      .forward = {},
                      .backward = {},
                      .micro_batches = micro_batches,
                      .iterations = iterations};
  for (const int n : layers) {
    pipeline.forward.push_back(n * costs.forward);
    pipeline.backward.push_back(n * (costs.input + costs.weight));
  }
  return pipeline;
}

const std::vector<Numbers>& shapes() {
  static const std::vector<Numbers> all = {
      {1, 1, 1}, {2, 1},    {1, 2}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2},    {3, 2}, {2, 3},
      {4, 2, 1}, {1, 2, 4}, {3},    {2, 2, 2}, {3, 1, 2}, {1, 3, 2, 1}, {5, 1}, {3, 1, 1}};
  return all;
}

/// ceil(a / b) for b > 0, of negative a too.
int ceiling(int a, int b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

Bytes parameters_of(const program::Sequence& sequence) {
  Bytes bytes;
  for (const program::Resident& one : sequence.residents) {
    if (one.category == program::Category::parameters) bytes += one.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("every iteration of PipeDream with copies ends when a second clock says so") {
  for (const Numbers& copies : shapes()) {
    for (const int rounds : {1, 3}) {
      for (const UnitCosts& costs : {UnitCosts{1, 1, 0}, UnitCosts{1, 1, 1}, UnitCosts{3, 4, 1}}) {
        // As many layers as copies, which balances them, and one more or less here and there.
        for (const int shift : {0, 1}) {
          Numbers layers = copies;
          for (std::size_t s = shift; s < layers.size(); s += 2) layers[s] += shift;
          const int m = rounds * common_multiple(copies);
          INFO(list(copies) << ", layers " << list(layers) << ", m=" << m << ", F=" << costs.forward
                            << ", B=" << costs.input + costs.weight);
          const int iterations = 7;
          const UnitPipeline pipeline(lowered("pipedream", copies, layers, m), costs, iterations);
          const RoundRobinClock clock(clock_of(copies, layers, m, costs, iterations));
          for (int i = 0; i < iterations; ++i)
            CHECK(pipeline.timeline.iteration_ends[i].picoseconds == clock.end_of(i) * unit);
        }
      }
    }
  }
}

TEST_CASE(
    "whatever the numbers of copies, no cells wait for each other and the second clock agrees") {
  // All pipelines of up to four stages in up to three copies: 3 + 9 + 27 + 81. Lowering refuses
  // what would wait for ever.
  int played = 0;
  for (int stages = 1; stages <= 4; ++stages) {
    Numbers copies(stages, 1);
    for (bool more = true; more; ++played) {
      const int m = common_multiple(copies);
      const UnitCosts costs{2, 1, 2};
      INFO(list(copies));
      const UnitPipeline pipeline(lowered("pipedream", copies, copies, m), costs, 3);
      const RoundRobinClock clock(clock_of(copies, copies, m, costs, 3));
      for (int i = 0; i < 3; ++i)
        CHECK(pipeline.timeline.iteration_ends[i].picoseconds == clock.end_of(i) * unit);
      int at = 0;
      while (at < stages && copies[at] == 3) copies[at++] = 1;
      more = at < stages;
      if (more) ++copies[at];
    }
  }
  CHECK(played == 120);
}

TEST_CASE("PipeDream's own example, 2-1, has no bubble, nor have pipelines of equal copies") {
  // Narayanan et al., SOSP 2019, section 3.2: a stage of twice the time in two copies. A stage of r
  // times the time in r copies takes as long for a micro-batch, F + B, as every other.
  for (const UnitCosts& costs : {UnitCosts{1, 1, 0}, UnitCosts{1, 1, 1}}) {
    const int work = costs.forward + costs.input + costs.weight;
    for (const Numbers& copies : {Numbers{2, 1}, {3, 1}, {5, 1}, {2, 2}, {2, 2, 1}, {2, 2, 2}}) {
      for (const int rounds : {1, 2, 3}) {
        INFO(list(copies) << " rounds=" << rounds);
        const int m = rounds * common_multiple(copies);
        const UnitPipeline pipeline(lowered("pipedream", copies, copies, m), costs, 12);
        CHECK(pipeline.period() == m * work);
      }
    }
  }
}

TEST_CASE("copies wait for each other at an update, once an iteration however long it is") {
  // From an update all r copies go on together, so that r micro-batches reach the next stage at
  // once. On r-1-1 the last of them is back after (r + 1)(F + B), and a warm-up of one covers r (F
  // + B); on r-1 it is back after r (F + B). On 3-2 one of two copies has two of three, which are
  // back after 4 (F + B). On 1-2 the copies get their micro-batches one after the other, and the
  // first waits for the second. All of this is gone where copies do not wait.
  for (const UnitCosts& costs : {UnitCosts{1, 1, 0}, UnitCosts{1, 1, 1}}) {
    const int work = costs.forward + costs.input + costs.weight;
    for (const Numbers& copies :
         {Numbers{2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {3, 2}, {1, 2}, {1, 1, 2}}) {
      for (const int rounds : {2, 4}) {
        INFO(list(copies) << " rounds=" << rounds);
        const int m = rounds * common_multiple(copies);
        const UnitPipeline pipeline(lowered("pipedream", copies, copies, m), costs, 24);
        CHECK(pipeline.period() == (m + 1) * work);
        RoundRobin without = clock_of(copies, copies, m, costs, 24);
        without.updates_meet = false;
        CHECK(RoundRobinClock(without).period() == m * work);
      }
    }
  }
}

TEST_CASE(
    "between single stages the copies of a stage collide: 1F1B-RR itself has a bubble there") {
  // 1-2-1: a micro-batch that never waits needs 8 units (F = B = 1, 2 in the copies) to come back
  // to stage 0, which has 4 in flight, one every 2 units: nothing may wait. F of the next
  // micro-batch but one reaches a copy 1 + 4 units after this one began, and so does B of this one.
  // One of the two waits for the other, in every round. No update is needed for that.
  for (const bool updates_meet : {true, false}) {
    RoundRobin pipeline = clock_of({1, 2, 1}, {1, 2, 1}, 4, {1, 1, 0}, 60);
    pipeline.updates_meet = updates_meet;
    CHECK(RoundRobinClock(pipeline).period() == 4 * 2 + 4);
  }
}

TEST_CASE("a copy keeps warm-up + 1 versions where each of its micro-batches ends in an update") {
  // Where it runs k micro-batches an iteration, its j-th reads the version of floor((j - w) / k),
  // and updates pass while w more run: ceil(w / k) + 1 versions. With k = 1 that is PipeDream's.
  for (const Numbers& copies : shapes()) {
    for (const int rounds : {1, 2}) {
      const int m = rounds * common_multiple(copies);
      const program::Program program = lowered("pipedream", copies, copies, m);
      int device = 0;
      for (int s = 0; s < static_cast<int>(copies.size()); ++s) {
        const int left = sum({copies.begin() + s, copies.end()});
        const int warm_up = (left - 1) / copies[s];
        const int turns = m / copies[s];
        for (int copy = 0; copy < copies[s]; ++copy, ++device) {
          INFO(list(copies) << ", m=" << m << ", stage " << s << ", copy " << copy);
          const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
          const int versions = ceiling(warm_up, turns) + 1;
          if (turns == 1) CHECK(versions == warm_up + 1);
          const Bytes one = copies[s] * 128_B + (s == 0 ? 16_B : 0_B);
          CHECK(parameters_of(sequence) == versions * one);
          for (const program::Call& call : sequence.calls) {
            const int turn = call.cell.micro_batch / copies[s];
            if (call.segment >= 0 && program.blocks[call.block].name != "step")
              CHECK(call.versions_behind == ceiling(warm_up - turn, turns));
          }
        }
      }
    }
  }
}

TEST_CASE("with two versions or vertical sync, all copies read what their schedule says") {
  for (const Numbers& copies : shapes()) {
    const int m = common_multiple(copies) * static_cast<int>(copies.size());
    const int first_warm_up = (sum(copies) - 1) / copies[0];
    for (const std::string schedule : {"pipedream-2bw", "pipedream-vertical"}) {
      INFO(schedule << " " << list(copies) << ", m=" << m);
      const program::Program program = lowered(schedule, copies, copies, m);
      for (const program::Sequence& sequence : program.sequences) {
        for (const program::Call& call : sequence.calls) {
          if (call.segment < 0 || program.blocks[call.block].name == "step") continue;
          const int turn = call.cell.micro_batch / copies[0];
          CHECK(call.versions_behind ==
                (schedule == "pipedream-2bw" ? 1 : ceiling(first_warm_up - turn, m / copies[0])));
        }
      }
    }
  }
}

TEST_CASE("a copy has warm-up + 1 micro-batches in flight") {
  for (const Numbers& copies : shapes()) {
    const int m = 4 * common_multiple(copies) * sum(copies);
    const UnitPipeline pipeline(lowered("1f1b", copies, copies, m), {1, 1, 1}, 1);
    int device = 0;
    for (int s = 0; s < static_cast<int>(copies.size()); ++s) {
      const int left = sum({copies.begin() + s, copies.end()});
      for (int copy = 0; copy < copies[s]; ++copy, ++device) {
        INFO(list(copies) << ", stage " << s << ", copy " << copy);
        CHECK(pipeline.in_flight(device) == (left - 1) / copies[s] + 1);
      }
    }
  }
}

}  // namespace stratagem::sim
