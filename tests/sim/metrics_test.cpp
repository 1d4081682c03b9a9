// Memory, overlap and communication as reports define them, on hand-built programs and on a small
// GPT.
#include "sim/metrics.hpp"

#include <numeric>

#include "sim/engine.hpp"
#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

Bytes total(const ByCategory& live) { return std::accumulate(live.begin(), live.end(), 0_B); }

Bytes of(const ByCategory& live, Category category) {
  return live[static_cast<std::size_t>(category)];
}

Timeline play(const HandBuilt& built, int iterations) {
  return run(built.program, on_one_link(built.program), built.prices, iterations);
}

/// A slot that one task allocates and another frees.
void lives(program::Block& block, int slot, int allocated, int freed) {
  block.tasks[allocated].allocates.push_back(slot);
  block.tasks[freed].frees.push_back(slot);
}

}  // namespace

TEST_CASE("what a task does tells computing from communicating, not its stream") {
  // 0..10 computes, 10..30 gathers on the stream of computations, 30..60 the host computes, 60..65
  // computes.
  HandBuilt built;
  Step host = kernel(30, 0, {1}, Stream::host);
  built.add_sequence({kernel(10), collective(20_B, {}, Stream::compute), host, kernel(5, 0, {2})});
  built.add_device(0, {0});
  const Timeline timeline = run(built.program, on_one_link(built.program), built.prices, 4);
  const Metrics result = metrics(built.program, timeline);
  CHECK(result.iteration_time.value == 65e-12);
  CHECK(close(result.exposed_communication.value, 20e-12, 1e-9));
  CHECK(close(result.bubble_fraction, 30.0 / 65, 1e-9));
}

TEST_CASE("what one rank does in a group of its own crosses no link, its copies to the host do") {
  HandBuilt built;
  built.add_sequence({collective(20_B), collective(1000_B, {}, Stream::communication, 1),
                      collective(7_B, {}, Stream::copy_out, 1, CollectiveKind::to_host)});
  built.add_device(0, {0, 1});
  built.add_device(0, {0, 2});
  const Timeline timeline =
      run(built.program,
          on_one_link(built.program, {CollectiveKind::all_reduce, CollectiveKind::to_host}),
          built.prices, 4);
  CHECK(metrics(built.program, timeline).communication ==
        std::map<std::string, Bytes>{{cost::to_text(CollectiveKind::all_reduce), 20_B},
                                     {cost::to_text(CollectiveKind::to_host), 7_B}});
}

TEST_CASE("the peak is the largest sum of buffers alive at one time, residents included") {
  //          0..10   10..20   20..30
  // x (40)   ######################          activations
  // y (7)            ########                temporaries
  // z (9)                     #######        temporaries, allocated the instant that y is freed
  HandBuilt built;
  built.add_sequence({kernel(10), kernel(10), kernel(10)}, {{"x", -1, 40_B, Category::activations},
                                                            {"y", -1, 7_B, Category::temporaries},
                                                            {"z", -1, 9_B, Category::temporaries}});
  program::Block& block = built.program.blocks[0];
  lives(block, 0, 0, 2);
  lives(block, 1, 1, 1);
  lives(block, 2, 2, 2);
  built.program.sequences[0].residents = {{Category::parameters, 100_B},
                                          {Category::gradients, 50_B}};
  built.add_device(0);
  const Timeline timeline = play(built, 2);
  const MemoryPeak peak = memory_peak(built.program, timeline, 0);
  CHECK(peak.total == 199_B);  // 150 + 40 + 9: y and z are never there together
  CHECK(peak.when == Instant{20});
  CHECK(of(peak.by_category, Category::parameters) == 100_B);
  CHECK(of(peak.by_category, Category::gradients) == 50_B);
  CHECK(of(peak.by_category, Category::activations) == 40_B);
  CHECK(of(peak.by_category, Category::temporaries) == 9_B);
  const std::vector<MemoryStep> steps = memory_steps(built.program, timeline, 0);
  CHECK(total(steps.front().live) == 150_B);
  CHECK(total(steps.back().live) == 150_B);
  CHECK(steps.back().when == Instant{30});
}

TEST_CASE("a buffer of a task that takes no time counts, and never makes the sum negative") {
  // x lives within the first task, of no duration, y within the second; z outlives them.
  HandBuilt built;
  built.add_sequence({kernel(0), kernel(0), kernel(5)}, {{"x", -1, 40_B, Category::temporaries},
                                                         {"y", -1, 30_B, Category::temporaries},
                                                         {"z", -1, 20_B, Category::temporaries}});
  lives(built.program.blocks[0], 0, 0, 0);
  lives(built.program.blocks[0], 1, 1, 1);
  lives(built.program.blocks[0], 2, 1, 2);
  built.add_device(0);
  const Timeline timeline = play(built, 1);
  CHECK(memory_peak(built.program, timeline, 0).total == 50_B);  // y and z; x was gone
  std::vector<Bytes> live;
  for (const MemoryStep& step : memory_steps(built.program, timeline, 0)) {
    live.push_back(total(step.live));
  }
  CHECK(live == std::vector<Bytes>{0_B, 40_B, 0_B, 30_B, 50_B, 20_B, 0_B});
}

TEST_CASE("a buffer of the device that lives from one task to another counts in between") {
  //              0..10   10..20   20..30
  // x (40)       ################          activations
  // parameters   ########################  100, always
  // gradients            ################  50, from the second task to the third
  HandBuilt built;
  built.add_sequence({kernel(10), kernel(10), kernel(10)},
                     {{"x", -1, 40_B, Category::activations}});
  lives(built.program.blocks[0], 0, 0, 1);
  using Span = program::Resident::Span;
  built.program.sequences[0].residents = {{Category::parameters, 100_B},
                                          {Category::gradients, 50_B, Span{{0, 1}, {0, 2}}}};
  built.add_device(0);
  const Timeline timeline = play(built, 2);
  std::vector<std::pair<std::int64_t, Bytes>> live;
  for (const MemoryStep& step : memory_steps(built.program, timeline, 0))
    live.emplace_back(step.when.picoseconds, total(step.live));
  CHECK(live == std::vector<std::pair<std::int64_t, Bytes>>{
                    {0, 100_B}, {0, 140_B}, {10, 190_B}, {20, 150_B}, {30, 100_B}});
  const MemoryPeak peak = memory_peak(built.program, timeline, 0);
  CHECK(peak.total == 190_B);
  CHECK(peak.when == Instant{10});
}

// All activations are there when the backward pass begins, and gradients are not yet: the peak
// falls by no more than those, and by something where they are the last to come.
TEST_CASE("gradients that are freed between iterations lower the peak") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const auto peak_of = [&](bool frees) {
    stack.rules.assign(frees, cost::Lifetime::gradients_until_step);
    const program::Program program = lowered_gpt(4, 2, {.pipeline = 2}, stack);
    const Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, true);
    return metrics(program, run(program, folding, price(program, profile, stack), 2)).peak;
  };
  const MemoryPeak kept = peak_of(false);
  const MemoryPeak freed = peak_of(true);
  CHECK(freed.total < kept.total);
  CHECK(kept.total - freed.total <= of(kept.highest, Category::gradients));
  CHECK(of(freed.highest, Category::gradients) == of(kept.highest, Category::gradients));
}

// 1F1B on four stages: four micro-batches are in flight on the first one, and each leaves 2sbh
// bytes; at most one of them is still on its way when the first backward pass is at its peak.
TEST_CASE("what a stage has sent waits for its gradient where the stack says so") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const auto steps_of = [&](bool keeps) {
    stack.rules.assign(keeps, cost::Lifetime::sent_until_gradients);
    const program::Program program = lowered_gpt(4, 8, {.pipeline = 4}, stack);
    const Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, true);
    const Timeline timeline = run(program, folding, price(program, profile, stack), 2);
    return std::pair(memory_peak(program, timeline, 0), memory_steps(program, timeline, 0).back());
  };
  const auto [kept, kept_at_end] = steps_of(true);
  const auto [freed, freed_at_end] = steps_of(false);
  const Bytes sent = 2.0 * 16 * 64 * 1_B;  // s = 16, b = 1, h = 64
  CHECK(kept.total - freed.total >= 2 * sent);
  CHECK(kept.total - freed.total <= 4 * sent);
  CHECK(total(kept_at_end.live) == total(freed_at_end.live));  // nothing is forgotten
}

// A copy in one type of what is stepped lives from the first step to the last; one of all gradients
// lives always, and is not divided with the steps.
TEST_CASE("copies of gradients take their bytes during the steps, or always") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const auto residents_of = [&](const cost::Stack& stack, int zero) {
    const program::Program program = lowered_gpt(2, 2, {.data = 2, .zero = {.stage = zero}}, stack);
    return program.sequences.front().residents;
  };
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const auto sum = [](const std::vector<program::Resident>& residents, Category category,
                      bool spans) {
    Bytes bytes;
    for (const program::Resident& resident : residents) {
      if (resident.category == category && resident.span.has_value() == spans)
        bytes += resident.bytes;
    }
    return bytes;
  };
  for (const int zero : {0, 1}) {
    const Bytes plain = sum(residents_of(stack, zero), Category::gradients, false);
    cost::Stack copying = stack;
    copying.rules = {cost::ExtraState{"fp32", 4_B, cost::ExtraState::With::steps},
                     cost::ExtraState{"fp16", 2_B, cost::ExtraState::With::gradients}};
    const auto residents = residents_of(copying, zero);
    CHECK(sum(residents, Category::gradients, false) == 2 * plain);  // 2 bytes as the first ones
    CHECK(sum(residents, Category::temporaries, true) == 2 * plain / (zero == 0 ? 1 : 2));
  }
}

TEST_CASE("buffers of tasks on different streams are alive together") {
  // a: 0..10 on one stream, b: 5..15 on another: both live from 5 to 10.
  HandBuilt built;
  built.add_sequence(
      {kernel(5), kernel(10, 0, {0}, Stream::communication), kernel(5)},
      {{"a", -1, 30_B, Category::temporaries}, {"b", -1, 20_B, Category::gradients}});
  program::Block& block = built.program.blocks[0];
  lives(block, 0, 0, 2);
  lives(block, 1, 1, 1);
  built.add_device(0);
  const MemoryPeak peak = memory_peak(built.program, play(built, 1), 0);
  CHECK(peak.total == 50_B);
  CHECK(peak.when == Instant{5});
}

TEST_CASE("the peak of a program is that of its fullest device") {
  HandBuilt built;
  for (const Bytes bytes : {10_B, 30_B, 20_B}) {
    built.add_sequence({kernel(1)}, {{"x", -1, bytes, Category::activations}});
    lives(built.program.blocks.back(), 0, 0, 0);
    built.add_device(static_cast<int>(built.program.devices.size()));
  }
  CHECK(metrics(built.program, play(built, 2)).peak.total == 30_B);
}

TEST_CASE("what an iteration allocates it frees: live bytes return to the residents") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  for (const strategies::Options& options :
       {strategies::Options{.recompute = {"full"}},
        strategies::Options{.tensor = 4, .data = 2, .overlap_gradients = true, .bucket = 50_KB},
        strategies::Options{.tensor = 2, .pipeline = 2, .data = 2, .recompute = {"full"}},
        strategies::Options{.pipeline = 2, .recompute = {"full", 2}},
        strategies::Options{.tensor = 4, .recompute = {"full"}, .partition_checkpoints = true},
        strategies::Options{.pipeline = 4,
        .swap = {.layers = 2, .to = strategies::Keep::Where::peers}},
        strategies::Options{.pipeline = 4, .data = 2, .schedule = "gpipe"}}) {
    const program::Program program = lowered_gpt(4, 4, options, stack);
    const Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, true);
    const Timeline timeline = run(program, folding, price(program, profile, stack), 2);
    for (std::size_t a = 0; a < folding.actors.size(); ++a) {
      Bytes residents;
      const int sequence = folding.actors[a].sequence;
      for (const program::Resident& resident : program.sequences[sequence].residents) {
        residents += resident.bytes;
      }
      const std::vector<MemoryStep> steps = memory_steps(program, timeline, a);
      CHECK(total(steps.front().live) == residents);
      CHECK(total(steps.back().live) == residents);
      Bytes highest;
      for (const MemoryStep& step : steps) {
        for (const Bytes bytes : step.live) CHECK(bytes >= 0_B);
        CHECK(total(step.live) >= residents);
        highest = std::max(highest, total(step.live));
      }
      CHECK(highest == memory_peak(program, timeline, a).total);
    }
  }
}

TEST_CASE("an all-reduce that nothing overlaps is exposed for as long as it takes") {
  // compute 0..10, sum 10..15, compute 15..20: exposed 5 of a period of 20, no bubble.
  HandBuilt built;
  built.add_sequence({kernel(10), collective(5_B, {0}), kernel(5, 0, {1})});
  built.add_device(0, {0});
  built.add_device(0, {0});
  const Metrics result = metrics(built.program, play(built, 3));
  CHECK(to_ticks(result.iteration_time).count == 20);
  CHECK(to_ticks(result.exposed_communication).count == 5);
  CHECK(result.bubble_fraction == 0);
}

TEST_CASE("communication is exposed only where nothing is computed beside it") {
  // compute 0..10 and 10..14; sum 10..20; then 6 of 10 are exposed.
  HandBuilt built;
  built.add_sequence({kernel(10), collective(10_B, {0}), kernel(4), kernel(0, 0, {1})});
  built.add_device(0, {0});
  built.add_device(0, {0});
  const Metrics result = metrics(built.program, play(built, 3));
  CHECK(to_ticks(result.iteration_time).count == 20);
  CHECK(to_ticks(result.exposed_communication).count == 6);
}

TEST_CASE("waiting for the last rank of a collective is bubble, not communication") {
  // Ranks compute 10 and 30, then sum for 10: the first waits 20 of a period of 40; mean over both:
  // 1/4.
  HandBuilt built;
  for (const int work : {10, 30}) {
    built.add_sequence({kernel(work), collective(10_B, {0}), kernel(0, 0, {1})});
  }
  built.add_device(0, {0});
  built.add_device(1, {0});
  const Metrics result = metrics(built.program, play(built, 3));
  CHECK(to_ticks(result.iteration_time).count == 40);
  CHECK(to_ticks(result.makespan).count == 40);
  CHECK(close(result.bubble_fraction, 0.25, 1e-12));
  CHECK(to_ticks(result.exposed_communication).count == 10);
}

TEST_CASE("an actor that stands for many devices weighs as many") {
  // Three devices compute 30 and sum for 10, one computes 10: it alone waits, 20 of a period of 40;
  // 20 of 160.
  HandBuilt built;
  for (const int work : {30, 10}) {
    built.add_sequence({kernel(work), collective(10_B, {0}), kernel(0, 0, {1})});
  }
  built.add_device(0, {0});
  built.add_device(1, {0});
  Folding folding = on_one_link(built.program);
  folding.actors[0].multiplicity = 3;
  const Metrics result = metrics(built.program, run(built.program, folding, built.prices, 3));
  CHECK(to_ticks(result.iteration_time).count == 40);
  CHECK(close(result.bubble_fraction, 20.0 / 160, 1e-12));
}

TEST_CASE("communication is counted by kind as payload per device") {
  HandBuilt built;
  built.add_sequence({collective(6_B), collective(4_B)});
  built.add_sequence({kernel(1)});
  built.add_device(0, {0});
  built.add_device(0, {0});
  built.add_device(1);
  built.add_device(1);
  const Metrics result = metrics(built.program, play(built, 2));
  CHECK(result.communication.size() == 1);
  CHECK(close(result.communication.at("all_reduce"), 5_B, 1e-12));  // 10 on two of four devices
}

}  // namespace stratagem::sim
