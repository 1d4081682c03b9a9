// Shares of kernels and of communication beyond what was measured, against sums by hand.
#include "study/extrapolation.hpp"

#include "cost/kernel_time.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;
using study::extrapolated;

namespace {

constexpr int gpus_per_node = 8;

/// Elementwise kernels of 1 to 200 MB and products of 1e9 to 1e12 FLOP were measured, and
/// all-reduces of 1 MB to 1 GB on 2 to 8 ranks. Launches take no time, so that times are as
/// traffic.
cost::Profile profile() {
  cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3.json");
  profile.kernels.floor.value = 0_s;
  profile.evidence = {
      {"elementwise", {.size = {1e6, 2e8}}},
      {"gemm fp16", {.size = {1e9, 1e12}, .smallest = cost::Range{64, 4096}}},
      {"all_reduce", {.size = {1e6, 1e9}, .ranks = cost::Range{2, 8}}},
  };
  return profile;
}

cost::Stack stack() {
  cost::Stack stack;
  stack.slowdown.value = stack.host_factor.value = 1;
  return stack;
}

cost::Kernel moving(Bytes traffic, int launches = 1) {
  return {.kind = cost::KernelKind::elementwise, .traffic = traffic, .launches = launches};
}

/// One device that runs these once, in one group of `ranks`.
program::Program program_of(const std::vector<std::variant<cost::Kernel, program::Collective>>& all,
                            const std::vector<int>& ranks = {0, 1}) {
  program::Program program;
  program.communicators = {{ranks}};
  program.blocks = {{.name = "block"}};
  for (const auto& work : all) program.blocks[0].tasks.push_back({.name = "task", .work = work});
  program.sequences = {{.calls = {{.block = 0}}}};
  program.devices = {{.sequence = 0, .groups = {0}}};
  return program;
}

}  // namespace

TEST_CASE("kernels that move more or less than was measured count with their time") {
  // 100 MB within, 300 MB beyond: 300 of 400.
  const auto shares =
      extrapolated(profile(), stack(), program_of({moving(100_MB), moving(300_MB)}), gpus_per_node);
  CHECK(close(shares.kernel_time, 0.75, 1e-9));
  CHECK(close(shares.by_kind.at("elementwise"), 0.75, 1e-9));
  CHECK(shares.bytes == 0);
  // 300 MB in two launches are two kernels of 150 MB.
  CHECK(extrapolated(profile(), stack(), program_of({moving(300_MB, 2)}), gpus_per_node)
            .kernel_time == 0);
}

TEST_CASE("a block counts as often as devices call it") {
  program::Program twice = program_of({moving(100_MB)});
  twice.blocks.push_back({.name = "large", .tasks = {{.name = "task", .work = moving(300_MB)}}});
  twice.sequences[0].calls = {{.block = 0}, {.block = 0}, {.block = 0}, {.block = 1}};
  twice.devices.resize(5, {.sequence = 0, .groups = {0}});
  CHECK(close(extrapolated(profile(), stack(), twice, gpus_per_node).kernel_time, 0.5, 1e-9));
}

TEST_CASE("a product is beyond by its operations or by its smallest dimension") {
  const auto share = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto flops = Flops{2.0 * static_cast<double>(m * n * k)};
    const cost::Kernel kernel{
        .kind = cost::KernelKind::gemm, .m = m, .n = n, .k = k, .batch = 1, .flops = flops};
    return extrapolated(profile(), stack(), program_of({kernel}), gpus_per_node).kernel_time;
  };
  CHECK(share(1024, 1024, 1024) == 0);
  CHECK(share(32, 8192, 8192) == 1);       // 4e9 FLOP, but narrower than all that was measured
  CHECK(share(16384, 16384, 16384) == 1);  // 9e12 FLOP
}

TEST_CASE("what unaligned rows cost is what their limit adds to a product's time") {
  cost::Profile limited = profile();
  limited.kernels.gemm.at("fp16").unaligned[2].value = 0.01;
  cost::Kernel product{.kind = cost::KernelKind::gemm,
                       .m = 1024,
                       .n = 1024,
                       .k = 1024,
                       .batch = 1,
                       .flops = Flops{2.0 * 1024 * 1024 * 1024}};
  const Seconds aligned = cost::kernel_time(product, limited);
  product.alignment = 2;
  const Seconds slow = cost::kernel_time(product, limited);
  const auto share = [&](const cost::Profile& of) {
    return extrapolated(of, stack(), program_of({product}), gpus_per_node).unaligned;
  };
  CHECK(close(share(limited), 1 - aligned / slow, 1e-9));
  CHECK(share(profile()) == 0);  // no limit is known
}

TEST_CASE("a kind that nobody fitted is beyond what was measured") {
  const cost::Kernel softmax{.kind = cost::KernelKind::softmax, .traffic = 100_MB};
  CHECK(extrapolated(profile(), stack(), program_of({softmax}), gpus_per_node)
            .by_kind.at("softmax") == 1);
}

TEST_CASE("all-reduces of measured sizes and ranks in one server are within, all else is beyond") {
  const auto share = [&](cost::CollectiveKind kind, Bytes payload, const std::vector<int>& ranks) {
    const program::Collective one{.kind = kind, .payload = payload};
    return extrapolated(profile(), stack(), program_of({one}, ranks), gpus_per_node).bytes;
  };
  using cost::CollectiveKind;
  CHECK(share(CollectiveKind::all_reduce, 100_MB, {0, 1, 2}) == 0);
  CHECK(share(CollectiveKind::all_reduce, 2000_MB, {0, 1, 2}) == 1);
  CHECK(share(CollectiveKind::all_reduce, 100_MB, {7, 8}) == 1);  // of two servers
  CHECK(share(CollectiveKind::all_gather, 100_MB, {0, 1}) == 1);
  CHECK(share(CollectiveKind::all_gather, 100_MB, {0}) == 0);  // by one rank: to nobody
  CHECK(share(CollectiveKind::to_host, 100_MB, {0, 1}) == 0);  // no communication between devices
}

TEST_CASE("collectives of ranks on processors are within what was measured of their kind") {
  cost::Profile cpu = profile();
  cpu.collective.memory_efficiency = cost::Constant<double>{.value = 0.25, .source = {}};
  cpu.collective.times["all_gather"].by_ranks = {{2, {{1_KB, 10_us}, {1_MB, 100_us}}},
                                                 {4, {{1_KB, 20_us}, {10_MB, 2_ms}}}};
  const auto share = [&](cost::CollectiveKind kind, Bytes payload, const std::vector<int>& ranks) {
    const program::Collective one{.kind = kind, .payload = payload};
    return extrapolated(cpu, stack(), program_of({one}, ranks), gpus_per_node).bytes;
  };
  using cost::CollectiveKind;
  CHECK(share(CollectiveKind::all_gather, 100_KB, {0, 1}) == 0);
  CHECK(share(CollectiveKind::all_gather, 100_KB, {0, 1, 2}) == 0);
  CHECK(share(CollectiveKind::all_gather, 2_MB, {0, 1}) == 1);
  CHECK(share(CollectiveKind::all_gather, 2_MB, {0, 1, 2}) == 1);  // of two ranks nobody knows it
  CHECK(share(CollectiveKind::all_gather, 2_MB, {0, 1, 2, 3}) == 0);
  CHECK(share(CollectiveKind::all_gather, 0.5_KB, {0, 1, 2, 3}) == 1);
  CHECK(share(CollectiveKind::all_gather, 100_KB, {0, 1, 2, 3, 4}) == 1);
  CHECK(share(CollectiveKind::all_gather, 100_KB, {7, 8}) == 1);  // of two servers
  // What evidence there is of GPUs' all-reduces says nothing of them.
  CHECK(share(CollectiveKind::all_reduce, 100_MB, {0, 1}) == 1);
}

TEST_CASE("a run of shipped constants says what it extrapolates") {
  const auto shares = extrapolated(cost::read_profile("scenarios/profiles/v100-sxm2.json"), stack(),
                                   program_of({moving(100_MB), moving(500_GB)}), gpus_per_node);
  CHECK(shares.kernel_time > 0.99);
  CHECK(shares.kernel_time < 1);
}
