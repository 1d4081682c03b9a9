// Kernels beside communication: instants derived by hand, a second engine on random programs,
// limits.
#include "sim/slowed_kernels.hpp"

#include <cmath>
#include <iterator>

#include "base/input_error.hpp"
#include "sim/steady.hpp"
#include "tests/catch.hpp"
#include "tests/random_cases.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/tick_clock.hpp"

namespace stratagem::sim {

namespace {

using Times = std::vector<std::int64_t>;

/// What the processors of the server do: never slowed down.
Step on_host(std::int64_t duration, std::vector<int> waits = {}) {
  Step step = kernel(duration, 0, std::move(waits), Stream::host);
  step.task.work = cost::Kernel{.kind = cost::KernelKind::host_optimizer};
  return step;
}

/// Links so wide that no collective takes anything from another: one takes a picosecond a byte.
Folding apart(const program::Program& program, double slowdown, Ticks latency = {}) {
  Folding folding = on_one_link(
      program, {CollectiveKind::all_reduce, CollectiveKind::send, CollectiveKind::to_host},
      latency);
  folding.capacities = {1e6 * byte_per_picosecond};
  folding.compute_slowdown = slowdown;
  return folding;
}

/// One device, alone in a communicator; ends of its tasks.
Times ends_of(const std::vector<Step>& steps, double slowdown) {
  HandBuilt built;
  built.add_sequence(steps);
  built.add_device(0, {0});
  return ends(run(built.program, apart(built.program, slowdown), built.prices, 1), 0, 0);
}

}  // namespace

TEST_CASE("a collective within a kernel stretches it by what is lost in the meantime") {
  // The collective runs from 3000 to 7000. With s = 1/4 the kernel does 3000 in these 4000.
  const std::vector<Step> steps = {kernel(10'000), on_host(3000), collective(4000_B, {1})};
  CHECK(ends_of(steps, 0.25) == Times{11'000, 3000, 7000});
  CHECK(ends_of(steps, 0) == Times{10'000, 3000, 7000});
  CHECK(ends_of(steps, 0.5) == Times{12'000, 3000, 7000});
}

TEST_CASE("a kernel that begins amid a collective is slowed down from then on") {
  // Launched at 2000; the collective ends at 4000: 2000 * 1/4 are lost.
  CHECK(ends_of({collective(4000_B), kernel(10'000, 2000)}, 0.25) == Times{4000, 12'500});
}

TEST_CASE("two collectives at a time count once") {
  // 0..4000 and 2000..6000: 6000 * 1/4 are lost.
  const Times times = ends_of({kernel(10'000), collective(4000_B), on_host(2000),
                               collective(4000_B, {2}, Stream::gradient_communication)},
                              0.25);
  CHECK(times == Times{11'500, 4000, 2000, 6000});
}

TEST_CASE("kernels on two streams are slowed down beside each other") {
  // The collective begins when the kernel on its own stream has ended, at 10; both others go at
  // half their speed from then on: 2 of the first are left, 1 of the last.
  CHECK(ends_of({kernel(12), kernel(10, 0, {}, Stream::communication), collective(10_B),
                 kernel(11, 0, {}, Stream::gradient_communication), kernel(1, 0, {3})},
                0.5) == Times{14, 10, 20, 12, 16});
}

TEST_CASE("one collective right after another is as one that is longer") {
  CHECK(ends_of({kernel(10'000), collective(4000_B), collective(4000_B)}, 0.25) ==
        Times{12'000, 4000, 8000});
  CHECK(ends_of({kernel(10'000), collective(8000_B)}, 0.25) == Times{12'000, 8000});
}

TEST_CASE("a kernel that ends within a collective takes its work over what is left of its speed") {
  // 3 / (3/4) = 4; 4 / (3/4) = 5 1/3, which is over in the sixth picosecond.
  CHECK(ends_of({kernel(3), collective(1000_B)}, 0.25) == Times{4, 1000});
  CHECK(ends_of({kernel(4), collective(1000_B)}, 0.25) == Times{6, 1000});
}

TEST_CASE("a chain of kernels is slowed down where the collective is") {
  // The first does 4 in 8. The second begins at 8, does 1 until 10, and 3 from there.
  CHECK(ends_of({collective(10_B), kernel(4), kernel(4, 0, {1}), kernel(4)}, 0.5) ==
        Times{10, 8, 13, 17});
}

TEST_CASE("collectives that wait for slowed kernels begin later") {
  // Of the first kernel 2 of 5 are left at 6, when the collective ends. What waits for it begins
  // at 8.
  CHECK(ends_of({collective(6_B), kernel(5), collective(6_B, {1}), kernel(5)}, 0.5) ==
        Times{6, 8, 14, 8 + 6 + 2});
}

TEST_CASE("a collective slows all of its ranks down from its last arrival on, latency included") {
  // Ranks arrive at 0 and 20; latency 5 and 10 bytes: 20..35, of which 15 * 1/5 are lost.
  HandBuilt built;
  built.add_sequence({collective(10_B), kernel(40)});
  built.add_sequence({on_host(20), collective(10_B, {0}), kernel(40)});
  built.add_sequence({kernel(40)});
  built.add_device(0, {0});
  built.add_device(1, {0});
  built.add_device(2, {-1});
  const Timeline timeline = run(built.program, apart(built.program, 0.2, {5}), built.prices, 1);
  CHECK(ends(timeline, 0, 0) == Times{35, 43});
  CHECK(ends(timeline, 1, 0) == Times{20, 35, 43});
  CHECK(ends(timeline, 2, 0) == Times{40});
}

TEST_CASE("sends slow both ends down, but copies to the host and what the host does do not") {
  const auto send = [](CollectiveKind kind, Stream stream) {
    return collective(8_B, {}, stream, 0, kind);
  };
  CHECK(ends_of({send(CollectiveKind::send, Stream::send_forward), kernel(8)}, 0.5) ==
        Times{8, 12});
  CHECK(ends_of({send(CollectiveKind::to_host, Stream::copy_out), kernel(8)}, 0.5) == Times{8, 8});
  CHECK(ends_of({collective(8_B), on_host(8)}, 0.5) == Times{8, 8});
}

TEST_CASE("the last kernel is slowed down too, launches are not") {
  // Ten kernels of 3 launched every 10; the last one's 3 begin at 100, amid a collective.
  HandBuilt built;
  built.add_sequence({on_host(95), collective(50_B, {0}), kernel(30)});
  built.prices[0][2] = {
      .device = {30}, .host = {100}, .first_launch = {10}, .last_kernel = {3}, .idle = {}};
  built.add_device(0, {0});
  const auto end_with = [&](double slowdown) {
    return ends(run(built.program, apart(built.program, slowdown), built.prices, 1), 0, 0)[2];
  };
  CHECK(end_with(0) == 103);
  CHECK(end_with(0.25) == 104);
  CHECK(end_with(0.75) == 112);
}

TEST_CASE("what the device idles between launches is not stretched") {
  // 20 of 30 are work: 10 go on at full speed in any case. 30 / (1 - 0.3 * 20 / 30) = 37.5.
  HandBuilt built;
  built.add_sequence({kernel(30), collective(1000_B)});
  built.prices[0][0].idle = {10};
  built.add_device(0, {0});
  const Timeline timeline = run(built.program, apart(built.program, 0.3), built.prices, 1);
  CHECK(ends(timeline, 0, 0)[0] == 38);
}

TEST_CASE("a host that waits for a slowed kernel goes on when it ends") {
  // The kernel does 10 in 0..20, the next is launched at 20 + 5; the collective ends at 22. That of
  // the second iteration is launched at 25 as well, and slows the last kernel down until 47.
  HandBuilt built;
  built.add_sequence({collective(22_B), kernel(10), kernel(10, 5)});
  built.program.blocks[0].tasks[1].synchronizations = 1;
  built.add_device(0, {0});
  const Timeline timeline = run(built.program, apart(built.program, 0.5), built.prices, 2);
  CHECK(begins(timeline, 0, 0) == Times{0, 0, 25});
  CHECK(ends(timeline, 0, 0) == Times{22, 20, 45});
  CHECK(begins(timeline, 0, 1).front() == 25);
}

TEST_CASE("rounding does not add up over many changes of rate") {
  // 1000 times a picosecond of two: 1000 * 333333 / 10^6 are lost in all, 333.333.
  SlowedWork work({0}, {10'000}, 333'333);
  for (std::int64_t t = 0; t < 2000; t += 2) work.slow({t}, {t + 1});
  CHECK(work.end() == Instant{10'334});
  // The same in one piece, seen from any instant before.
  SlowedWork once({0}, {10'000}, 333'333);
  once.slow({0}, {1000});
  CHECK(once.end() == Instant{10'334});
  // A month of work, slowed down for a day: whole numbers do not overflow on the way.
  const std::int64_t day = 86'400'000'000'000'000;
  SlowedWork longest({0}, {30 * day}, 150'000);
  longest.slow({0}, {day});
  CHECK(longest.end() == Instant{30 * day + day / 100 * 15});
  CHECK(SlowedWork({0}, {17 * day}, 150'000).end(Instant{0}) == Instant{20 * day});
  CHECK_THROWS_AS(SlowedWork({0}, {30 * day}, 999'999).end(Instant{0}), InputError);
}

TEST_CASE("communication before a kernel begins and after it has ended takes nothing from it") {
  SlowedWork work({100}, {50}, 500'000);
  work.slow({0}, {100});
  CHECK(work.end() == Instant{150});
  CHECK(work.end(Instant{160}) == Instant{150});
  work.slow({160}, {200});
  CHECK(work.end() == Instant{150});
  SlowedWork slowed({100}, {50}, 500'000);
  slowed.slow({140}, {1000});  // 40 done, 10 at half the speed
  CHECK(slowed.end() == Instant{160});
}

TEST_CASE("a slow-down is refused that leaves no speed, or makes kernels faster") {
  CHECK(to_millionths(0.15) == 150'000);
  CHECK(to_millionths(0.99999999) == 999'999);
  for (const double share : {-0.1, 1.0, 2.0, std::nan("")})
    CHECK_THROWS_AS(to_millionths(share), InputError);
}

namespace {

/// Kernels, collectives, copies and steps on the host in one order for all devices, so that no rank
/// waits for ever. If not `mixed` without copies and steps on the host, and all kernels in one
/// queue.
struct RandomProgram {
  HandBuilt built;
  std::int64_t latency = 0;

  explicit RandomProgram(int devices, bool mixed = true) {
    const int communicators = pick(1, 3);
    std::vector<std::vector<int>> groups(devices);
    for (int c = 0; c < communicators; ++c) {
      const int first = pick(0, devices - 1);
      for (int d = 0; d < devices; ++d) groups[d].push_back(d == first || pick(0, 1) == 1 ? c : -1);
    }
    for (int d = 0; d < devices; ++d) groups[d].push_back(communicators + d);  // its copies
    std::vector<std::vector<Step>> steps(devices);
    for (int count = pick(2, 14); count > 0; --count) {
      const int kind = pick(0, mixed ? 5 : 3);
      if (kind <= 2) {
        const int d = pick(0, devices - 1);
        const auto stream = mixed && kind == 0 ? Stream::communication : Stream::compute;
        add(steps[d], kernel(pick(0, 20), pick(0, 1) * pick(0, 9), {}, stream));
      } else if (kind == 3) {
        const int c = pick(0, communicators - 1);
        const Bytes payload{static_cast<double>(pick(0, 20))};
        const auto stream = one_of<Stream>(
            {Stream::compute, Stream::communication, Stream::gradient_communication});
        for (int d = 0; d < devices; ++d) {
          if (groups[d][c] >= 0) add(steps[d], collective(payload, {}, stream, c));
        }
      } else if (kind == 4) {
        const Bytes payload{static_cast<double>(pick(0, 20))};
        add(steps[pick(0, devices - 1)],
            collective(payload, {}, Stream::copy_out, communicators, CollectiveKind::to_host));
      } else {
        add(steps[pick(0, devices - 1)], on_host(pick(0, 20)));
      }
    }
    latency = pick(0, 3);
    for (int d = 0; d < devices; ++d) {
      built.add_sequence(steps[d]);
      built.add_device(d, groups[d]);
      for (std::size_t t = 0; t < steps[d].size(); ++t) price(d, static_cast<int>(t));
    }
  }

 private:
  /// Waits for any tasks before, and perhaps has the host wait.
  static void add(std::vector<Step>& steps, Step step) {
    for (int other = 0; other < static_cast<int>(steps.size()); ++other) {
      if (pick(0, 3) == 0) step.task.waits.push_back(other);
    }
    step.task.synchronizations = pick(0, 9) == 0 ? 1 : 0;
    steps.push_back(std::move(step));
  }

  void price(int device, int task) {
    Price& price = built.prices[device][task];
    price.first_launch = {pick<std::int64_t>(0, price.host.count)};
    price.last_kernel = {pick<std::int64_t>(0, price.device.count)};
  }
};

double any_slowdown() { return one_of<double>({0, 0.000'001, 0.15, 0.25, 1.0 / 3, 0.5, 0.9}); }

}  // namespace

TEST_CASE("random programs take the instants of a clock that goes picosecond by picosecond") {
  always(
      [] {
        const int devices = pick(1, 3);
        const RandomProgram random(devices);
        const program::Program& program = random.built.program;
        const double slowdown = any_slowdown();
        const Timeline timeline =
            run(program, apart(program, slowdown, {random.latency}), random.built.prices, 2);
        const TickClock expected(program, random.built.prices, std::llround(slowdown * 1e6),
                                 random.latency, 2);
        for (int d = 0; d < devices; ++d) {
          Times found_begins = begins(timeline, d, 0);
          Times found_ends = ends(timeline, d, 0);
          std::ranges::copy(begins(timeline, d, 1), std::back_inserter(found_begins));
          std::ranges::copy(ends(timeline, d, 1), std::back_inserter(found_ends));
          RC_ASSERT(found_begins == expected.begins(d));
          RC_ASSERT(found_ends == expected.ends(d));
        }
      },
      2000);
}

TEST_CASE("on one device without copies, no task ends sooner where kernels are slowed down more") {
  always(
      [] {
        const RandomProgram random(1, false);
        const program::Program& program = random.built.program;
        Times before;
        for (const double slowdown : {0.0, 0.1, 0.25, 0.3, 0.6, 0.95}) {
          const Timeline timeline =
              run(program, apart(program, slowdown, {random.latency}), random.built.prices, 1);
          const Times now = ends(timeline, 0, 0);
          for (std::size_t t = 0; t < before.size(); ++t) RC_ASSERT(now[t] >= before[t]);
          before = now;
        }
      },
      500);
}

TEST_CASE("a longer kernel can put communication off until it slows another one down less") {
  // The first kernel does its 10 beside the first collective and ends at 10 + 10 s. Then a copy
  // takes 10, then a collective: from 20 + 10 s on it is beside the last kernel, which begins at 16
  // and does 9. s = 1/5: it does 6 until 22 and 3 in 3.75 more. s = 1/2: all until 25.
  const std::vector<Step> steps = {
      kernel(10),
      collective(10_B),
      collective(10_B, {0}, Stream::copy_out, 0, CollectiveKind::to_host),
      collective(10_B, {2}),
      on_host(16),
      kernel(9, 0, {4}),
      on_host(100, {5})};
  CHECK(ends_of(steps, 0.2) == Times{12, 10, 22, 32, 16, 26, 126});
  CHECK(ends_of(steps, 0.5) == Times{15, 10, 25, 35, 16, 25, 125});
}

TEST_CASE("where nothing runs beside communication, slower kernels change nothing") {
  // Tensor parallelism alone: its collectives stand in the queue of the kernels.
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const program::Program program = lowered_gpt(4, 4, {.tensor = 4, .recompute = {"full"}});
  const Prices prices = price(program, profile, {.slowdown = {1}, .host_factor = {1}});
  Folding folding = fold(program, cluster("dgx-2h", 1), profile.collective, true);
  const Timeline fast = run(program, folding, prices, 3);
  folding.compute_slowdown = 0.5;
  const Timeline slow = run(program, folding, prices, 3);
  for (std::size_t a = 0; a < folding.actors.size(); ++a) {
    CHECK(fast.times[a].begins == slow.times[a].begins);
    CHECK(fast.times[a].ends == slow.times[a].ends);
  }
}

TEST_CASE("folded and unfolded runs agree to the picosecond with slowed kernels") {
  cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  // So fast a host that kernels wait for each other, not for launches.
  cost::Stack stack{.slowdown = {1}, .host_factor = {0.01}};
  stack.rules = {cost::OperatorKernels{.of = "optimizer_step", .synchronizations = 2}};
  for (const strategies::Options& options :
       {strategies::Options{
            .tensor = 2, .data = 8, .gradients = {.overlap = true, .bucket = 50_KB}},
        strategies::Options{.tensor = 2, .pipeline = 4, .data = 2, .recompute = {"full"}},
        strategies::Options{.pipeline = 4, .data = 4, .schedule = "gpipe"}}) {
    const program::Program program = lowered_gpt(4, 4, options, stack);
    const Prices prices = price(program, profile, stack);
    std::vector<Instant> without;
    for (const double slowdown : {0.0, 0.15, 0.7}) {
      profile.collective.compute_slowdown = cost::Constant<double>{.value = slowdown};
      const auto folding = [&](bool folded) {
        return fold(program, cluster("dgx-2h", 1), profile.collective, folded);
      };
      const Timeline one = run_until_steady(program, folding(true), prices);
      const Timeline all = run_until_steady(program, folding(false), prices);
      REQUIRE(one.actors.size() < all.actors.size());
      CHECK(one.iteration_ends == all.iteration_ends);
      for (std::size_t a = 0; a < one.actors.size(); ++a) {
        CHECK(one.times[a].begins == all.times[one.actors[a].device].begins);
        CHECK(one.times[a].ends == all.times[one.actors[a].device].ends);
      }
      if (slowdown == 0) without = one.iteration_ends;
      if (slowdown > 0) CHECK(one.iteration_ends.front() > without.front());
    }
  }
}

}  // namespace stratagem::sim
