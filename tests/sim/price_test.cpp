// Prices from a profile and a stack: launches, synchronisations, and kernels too small for either.
#include "sim/price.hpp"

#include <cmath>
#include <numbers>

#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"

namespace stratagem::sim {

namespace {

/// Launching takes 10 us; 1 us of a kernel is fixed, the rest moves 1 TB/s.
cost::Profile simple_profile() {
  cost::Profile profile;
  profile.launch.value = 10_us;
  profile.kernels.floor.value = 1_us;
  profile.memory.bandwidth.value = BytesPerSecond{1e12};
  profile.kernels.streaming["elementwise"].value = 1;
  return profile;
}

Price priced(const cost::Kernel& work, int synchronizations, const cost::Stack& stack) {
  HandBuilt built;
  built.add_sequence({kernel(0)});
  program::Task& task = built.program.blocks[0].tasks[0];
  task.work = work;
  task.synchronizations = synchronizations;
  return price(built.program, simple_profile(), stack)[0][0];
}

}  // namespace

TEST_CASE("a task costs the host a launch per kernel, and the device what its kernels move") {
  // 2 kernels: 2 * 1 us and 98 MB at 1 TB/s: 100 us on the device, 2 * 10 us on the host.
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const Price price = priced({.traffic = 98_MB, .launches = 2}, 0, stack);
  CHECK(price.device.count == 100'000'000);
  CHECK(price.host.count == 20'000'000);
  CHECK(price.first_launch.count == 10'000'000);
}

TEST_CASE(
    "several small kernels cost the device their own time, and the last one its share of it") {
  // 5 kernels of 1 us, and 5 launches of 10 us.
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const Price price = priced({.launches = 5}, 0, stack);
  CHECK(price.device.count == 5'000'000);
  CHECK(price.host.count == 50'000'000);
  CHECK(price.last_kernel.count == 1'000'000);
}

TEST_CASE("launches in a library take the host a tiny kernel's time, those of a graph nothing") {
  // The framework's launches take twice as long as the profile says; one of six is its own.
  const cost::Stack stack{.slowdown = {1}, .host_factor = {2}};
  const Price looped = priced({.launches = 6, .by = cost::LaunchedBy::loop}, 0, stack);
  CHECK(looped.host.count == 20'000'000 + 5 * 1'000'000);
  CHECK(looped.first_launch.count == 20'000'000);
  CHECK(looped.device.count == 6'000'000);
  const Price inner = priced({.launches = 6, .by = cost::LaunchedBy::library}, 0, stack);
  CHECK(inner.host.count == 6 * 1'000'000);
  CHECK(inner.first_launch.count == 1'000'000);
  CHECK(priced({.launches = 0, .by = cost::LaunchedBy::loop}, 0, stack).host.count == 0);
  const Price graph = priced({.launches = 6, .by = cost::LaunchedBy::graph}, 0, stack);
  CHECK(graph.host.count == 20'000'000);
  CHECK(graph.device.count == 6'000'000);
  const Price captured = priced({.launches = 6, .by = cost::LaunchedBy::replay}, 0, stack);
  CHECK(captured.host.count == 0);
  CHECK(captured.first_launch.count == 0);
  CHECK(captured.device.count == 6'000'000);
}

TEST_CASE("a pass takes the host as long as the launches that the stack says") {
  cost::Stack stack{.slowdown = {1}, .host_factor = {2}};
  CHECK(pass_time(simple_profile(), stack).count == 0);
  stack.rules.emplace_back(cost::PassWork{3});
  CHECK(pass_time(simple_profile(), stack).count == 60'000'000);
}

TEST_CASE("after every synchronisation but the last the device idles for a launch") {
  // 2 kernels, 100 us; the host waits 3 times: two launches within the task find the device idle.
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  CHECK(priced({.traffic = 98_MB, .launches = 2}, 3, stack).device.count == 120'000'000);
  CHECK(priced({.traffic = 98_MB, .launches = 2}, 3, stack).idle.count == 20'000'000);
  CHECK(priced({.traffic = 98_MB, .launches = 2}, 1, stack).idle.count == 0);
  CHECK(priced({.traffic = 98_MB, .launches = 2}, 1, stack).device.count == 100'000'000);
}

TEST_CASE("the stack's two scalars stretch kernels and launches") {
  const cost::Stack stack{.slowdown = {1.5}, .host_factor = {0.5}};
  const Price price = priced({.traffic = 98_MB, .launches = 2}, 0, stack);
  CHECK(price.device.count == 150'000'000);
  CHECK(price.host.count == 10'000'000);
}

TEST_CASE(
    "each copy from pageable memory waits for its links as long as its constant does not contain") {
  // Two copies of 30 us and 4 MB at 1 GB/s; links take 5 ms where 1 ms is in the constant.
  cost::Profile profile = simple_profile();
  profile.host_copy.latency.value = 30_us;
  profile.host_copy.bandwidth.value = 1_GBps;
  HandBuilt built;
  built.add_sequence({kernel(0)});
  built.program.blocks[0].tasks[0].work =
      cost::Kernel{.kind = cost::KernelKind::host_copy, .traffic = 4_MB, .launches = 2};
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const auto device = [&] { return price(built.program, profile, stack, 1, 5_ms)[0][0].device; };
  CHECK(device().count == to_ticks(60_us + 4_ms + 10_ms).count);
  profile.host_copy.link_latency = cost::Constant<Seconds>{.value = 1_ms};
  CHECK(device().count == to_ticks(60_us + 4_ms + 8_ms).count);
  profile.host_copy.link_latency->value = 6_ms;
  CHECK(device().count == to_ticks(60_us + 4_ms).count);
}

TEST_CASE("a product takes as long as on the slowest GPU of the program, a copy as on any") {
  cost::Profile profile = simple_profile();
  profile.speed_spread = cost::Constant<double>{.value = 0.1};
  profile.multiprocessors.value = 1;
  profile.peak["fp16"].value = 1_TFLOPps;
  profile.kernels.gemm["fp16"] = {
      .efficiency = {1}, .half_intensity = {}, .ramp = {}, .streaming = {1}, .fixed = {}};
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const auto prices = [&](int gpus) {
    HandBuilt built;
    for (int gpu = 0; gpu < gpus; ++gpu) built.add_sequence({kernel(0), kernel(0)});
    built.program.devices.resize(gpus);
    for (program::Block& block : built.program.blocks) {
      block.tasks[0].work =
          cost::Kernel{.kind = cost::KernelKind::gemm, .m = 256, .n = 128, .k = 1000, .batch = 1};
      if (block.tasks.size() > 1) block.tasks[1].work = cost::Kernel{.traffic = 98_MB};
    }
    return price(built.program, profile, stack)[0];
  };
  // Of two the slower one: 0.1 / sqrt(pi) of a standard deviation of 0.1.
  const double slower = static_cast<double>(prices(2)[0].device.count) /
                        static_cast<double>(prices(1)[0].device.count);
  CHECK(slower == Approx(1 + 0.1 / std::sqrt(std::numbers::pi)).epsilon(1e-6));
  CHECK(prices(2)[1].device.count == prices(1)[1].device.count);
}

TEST_CASE("a collective costs the host one launch and has no time of its own") {
  HandBuilt built;
  built.add_sequence({collective(1_GB)});
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const Price price = sim::price(built.program, simple_profile(), stack)[0][0];
  CHECK(price.device.count == 0);
  CHECK(price.host.count == 10'000'000);
}

TEST_CASE(
    "a time that cannot be counted is refused with the task and the constant that makes it so") {
  // 98 MB at 1 B/s take 9.8e7 s, more than the 9e6 s that an instant of whole picoseconds holds.
  const auto complaint = [](auto spoil, const cost::Kernel& work) -> std::string {
    HandBuilt built;
    built.add_sequence({kernel(0)});
    program::Task& task = built.program.blocks[0].tasks[0];
    task.name = "the task";
    task.work = work;
    cost::Profile profile = simple_profile();
    profile.name = "p";
    cost::Stack stack{.name = "s", .slowdown = {1}, .host_factor = {1}};
    spoil(profile, stack);
    try {
      price(built.program, profile, stack);
    } catch (const InputError& error) {
      return error.what();
    }
    return "counted";
  };
  using Profile = cost::Profile;
  using Stack = cost::Stack;
  const cost::Kernel moves{.traffic = 98_MB, .launches = 2};
  CHECK(complaint([](Profile&, Stack&) {}, moves) == "counted");
  const std::string lead =
      "/profile: expected constants with which the task takes less than 9000000 s, found ";
  CHECK(complaint([](Profile& p, Stack&) { p.memory.bandwidth.value = BytesPerSecond{1}; },
                  moves) == lead + "/memory_bandwidth of profile p");
  CHECK(complaint([](Profile& p, Stack&) { p.kernels.streaming["elementwise"].value = 1e-12; },
                  moves) == lead + "/streaming/elementwise of profile p");
  CHECK(complaint([](Profile& p, Stack&) { p.kernels.floor.value = Seconds{5e6}; }, moves) ==
        lead + "/kernel_floor of profile p");
  CHECK(complaint([](Profile&, Stack& s) { s.host_factor.value = 1e300; }, moves) ==
        lead + "host_factor of stack s");
  CHECK(complaint([](Profile&, Stack& s) { s.slowdown.value = 1e300; }, moves) ==
        lead + "slowdown of stack s");
}

TEST_CASE("a step on the host shares its memory with the steps of all ranks of the server") {
  // 100 MB at 100 GB/s take 1 ms alone. Six ranks: on servers of four GPUs four step at a time, on
  // a server of sixteen all six.
  HandBuilt built;
  built.add_sequence({kernel(0)});
  built.program.blocks[0].tasks[0].work =
      cost::Kernel{.kind = cost::KernelKind::host_optimizer, .traffic = 100_MB};
  for (int device = 0; device < 6; ++device) built.add_device(0);
  cost::Profile profile = simple_profile();
  profile.host_memory_bandwidth = cost::Constant<BytesPerSecond>{.value = 100_GBps, .source = ""};
  const cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  for (const auto& [gpus_per_server, milliseconds] : {std::pair{1, 1}, {4, 4}, {16, 6}}) {
    const Price price = sim::price(built.program, profile, stack, gpus_per_server)[0][0];
    CHECK(price.device.count == milliseconds * 1'000'000'000LL);
    CHECK(price.host.count == 0);  // no kernel of the device, so none to launch
  }
}

}  // namespace stratagem::sim
