// GPipe and 1F1B from their strategies through the lowering: makespans and micro-batches in flight.
#include <map>
#include <set>

#include "sim/engine.hpp"
#include "sim/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

constexpr std::int64_t unit = 1'000'000;  // picoseconds

/// p stages of one layer each, m micro-batches; the forward cell of a stage costs `forward` units,
/// its backward cell `backward`, everything else (optimizer, launches, network) nothing.
struct Pipeline {
  strategies::Program program;
  Timeline timeline;

  Pipeline(const std::string& schedule, int p, int m, int forward, int backward) {
    program = lowered_gpt(p, m, {.pipeline = p, .schedule = schedule});
    Prices prices = price(program, [](const strategies::Task&) { return Price{}; });
    for (const strategies::Sequence& sequence : program.sequences) {
      std::set<strategies::Cell> seen;
      for (const strategies::Call& call : sequence.calls) {
        const bool computes = call.segment >= 0 && program.blocks[call.block].name != "step";
        if (!computes || !seen.insert(call.cell).second) continue;
        const bool is_forward = call.cell.pass == CellPass::forward;
        prices[call.block].front().device = {(is_forward ? forward : backward) * unit};
      }
    }
    const Cast actors = cast(program, instant_cluster(p), ideal_network(), true);
    REQUIRE(actors.actors.size() == static_cast<std::size_t>(p));
    timeline = run(program, actors, prices, 3);
  }

  /// The most micro-batches of which a stage keeps activations at one time: bytes born in forward
  /// cells that die in backward cells, over those of one micro-batch.
  [[nodiscard]] double in_flight(int stage) const {
    Bytes of_one;
    std::vector<std::pair<std::int64_t, double>> changes;  // deaths sort before births
    for (const auto& [tensor, life] : lives(stage)) {
      if (!life.computed_forward || life.death_pass != CellPass::backward) continue;
      changes.emplace_back(life.birth.picoseconds, life.bytes.value);
      changes.emplace_back(life.death.picoseconds, -life.bytes.value);
      if (tensor.second == 0) of_one += life.bytes;
    }
    std::ranges::sort(changes);
    double live = 0;
    double most = 0;
    for (const auto& [when, bytes] : changes) most = std::max(most, live += bytes);
    return most / of_one.value;
  }

 private:
  using CellPass = strategies::CellPass;
  struct Life {
    bool computed_forward = false;
    CellPass death_pass = CellPass::forward;
    Instant birth, death;
    Bytes bytes;
  };

  /// By tensor and micro-batch, in the first iteration.
  [[nodiscard]] std::map<std::pair<int, int>, Life> lives(int stage) const {
    std::map<std::pair<int, int>, Life> result;
    std::size_t flat = 0;
    for (const strategies::Call& call : program.sequences[stage].calls) {
      const strategies::Block& block = program.blocks[call.block];
      for (const strategies::Task& task : block.tasks) {
        const auto life_of = [&](int slot) -> Life& {
          const int place = block.slots[slot].tensor;
          const int tensor =
              call.segment < 0 ? place : program.segment_tensors[call.segment][place];
          return result[{tensor, call.cell.micro_batch}];
        };
        for (const int slot : task.births) {
          Life& life = life_of(slot);
          life.birth = timeline.times[stage].begins[0][flat];
          life.computed_forward = call.segment >= 0 && call.cell.pass == CellPass::forward;
          life.bytes = block.slots[slot].bytes;
        }
        for (const int slot : task.deaths) {
          Life& life = life_of(slot);
          life.death = timeline.times[stage].ends[0][flat];
          life.death_pass = call.cell.pass;
        }
        ++flat;
      }
    }
    return result;
  }
};

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
      const Pipeline pipeline(schedule, c.p, c.m, c.forward, c.backward);
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
    const Pipeline pipeline(schedule, 4, 8, 1, 2);
    const Metrics result = metrics(pipeline.program, pipeline.timeline);
    CHECK(close(result.iteration_time, Seconds{33 * unit * 1e-12}, 1e-12));
    CHECK(close(result.bubble_fraction, 3.0 / 11, 1e-12));
    CHECK(result.exposed_communication == 0_s);
  }
}

TEST_CASE("GPipe keeps the activations of all micro-batches on every stage") {
  for (const int m : {4, 8}) {
    const Pipeline pipeline("gpipe", 4, m, 1, 2);
    for (int stage = 0; stage < 4; ++stage) {
      INFO("m=" << m << " stage " << stage << ": " << pipeline.in_flight(stage));
      CHECK(close(pipeline.in_flight(stage), m, 1e-12));
    }
  }
}

TEST_CASE("1F1B keeps the activations of as many micro-batches as there are stages left") {
  // Stage i runs min(m, p - 1 - i) forward cells ahead, then one more before each backward cell.
  for (const int m : {4, 8, 2}) {
    const Pipeline pipeline("1f1b", 4, m, 1, 2);
    for (int stage = 0; stage < 4; ++stage) {
      INFO("m=" << m << " stage " << stage << ": " << pipeline.in_flight(stage));
      CHECK(close(pipeline.in_flight(stage), std::min(m, 4 - stage), 1e-12));
    }
  }
}

}  // namespace stratagem::sim
