// The weakest provenance: only of constants that the program has a use for.
#include "study/provenance.hpp"

#include "base/json_reader.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;
using cost::Provenance;
using study::weakest_provenance;

namespace {

constexpr int gpus_of_node = 8;

/// A profile of which every constant is measured.
cost::Profile measured_profile() {
  const auto constant = [](auto value) {
    return cost::Constant<decltype(value)>{
        .value = value, .provenance = Provenance::measured, .source = "us"};
  };
  cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3.json");
  profile.multiprocessors.provenance = profile.memory.size.provenance = Provenance::measured;
  profile.memory.bandwidth.provenance = profile.kernels.floor.provenance = Provenance::measured;
  profile.launch.provenance = profile.memory.context.provenance = Provenance::measured;
  for (auto& [type, peak] : profile.peak) peak = constant(peak.value);
  for (auto& [kind, share] : profile.kernels.streaming) share = constant(share.value);
  for (auto& [type, gemm] : profile.kernels.gemm) {
    gemm = {constant(0.9), constant(1.0), constant(1.0), constant(0.9), constant(1_us)};
  }
  profile.collective = {.nvlink_efficiency = constant(0.9),
                        .network_efficiency = constant(0.9),
                        .pcie_efficiency = constant(0.9),
                        .base = constant(1_us),
                        .node_step = constant(1_us),
                        .network_step = constant(1_us)};
  profile.memory.communicator = {constant(100_MB), constant(10_MB)};
  return profile;
}

cost::Stack measured_stack() {
  cost::Stack stack;
  stack.slowdown =
      stack.host_factor = {.value = 1, .provenance = Provenance::measured, .source = "us"};
  return stack;
}

program::Program program_of(cost::KernelKind kind, const std::vector<int>& group) {
  program::Program program;
  program.communicators = {{group}};
  program.devices = {{.groups = {0}}};
  program.blocks = {
      {.name = "b", .slots = {}, .tasks = {{.name = "t", .work = cost::Kernel{.kind = kind}}}}};
  return program;
}

}  // namespace

TEST_CASE("where all is measured, measured is the weakest") {
  const auto weakest = weakest_provenance(measured_profile(), measured_stack(),
                                          program_of(cost::KernelKind::gemm, {0, 1}), gpus_of_node);
  CHECK(weakest.provenance == Provenance::measured);
}

TEST_CASE("the scalars of a stack count") {
  cost::Stack stack = measured_stack();
  stack.product_slowdown = {.value = 1, .provenance = Provenance::assumed, .source = "a guess"};
  const auto weakest = weakest_provenance(measured_profile(), stack,
                                          program_of(cost::KernelKind::gemm, {0}), gpus_of_node);
  CHECK(weakest.provenance == Provenance::assumed);
  CHECK(weakest.stack == std::vector<std::string>{"/product_slowdown"});
}

TEST_CASE("a share of the memory bandwidth counts where a kernel of its kind runs") {
  cost::Profile profile = measured_profile();
  profile.kernels.streaming.at("dropout").provenance = Provenance::assumed;
  const auto weakest = [&](cost::KernelKind kind) {
    return weakest_provenance(profile, measured_stack(), program_of(kind, {0}), gpus_of_node);
  };
  CHECK(weakest(cost::KernelKind::dropout).provenance == Provenance::assumed);
  CHECK(weakest(cost::KernelKind::dropout).profile ==
        std::vector<std::string>{"/streaming/dropout"});
  CHECK(weakest(cost::KernelKind::softmax).provenance == Provenance::measured);
}

TEST_CASE("how far apart GPUs are counts where several of them multiply") {
  cost::Profile profile = measured_profile();
  profile.speed_spread = {.value = 0.01, .provenance = Provenance::assumed, .source = "a guess"};
  const auto weakest = [&](cost::KernelKind kind, int gpus) {
    program::Program program = program_of(kind, {0});
    program.devices.resize(gpus, program.devices.front());
    return weakest_provenance(profile, measured_stack(), program, gpus_of_node);
  };
  CHECK(weakest(cost::KernelKind::gemm, 1).provenance == Provenance::measured);
  CHECK(weakest(cost::KernelKind::dropout, 2).provenance == Provenance::measured);
  CHECK(weakest(cost::KernelKind::gemm, 2).profile == std::vector<std::string>{"/speed_spread"});
}

TEST_CASE("a constant of matrix products counts for its data type only") {
  cost::Profile profile = measured_profile();
  profile.kernels.gemm.at("fp32").ramp.provenance = Provenance::assumed;
  const auto weakest = weakest_provenance(profile, measured_stack(),
                                          program_of(cost::KernelKind::gemm, {0}), gpus_of_node);
  CHECK(weakest.provenance == Provenance::measured);  // kernels of fp16
}

TEST_CASE(
    "constants of collectives count where there are groups, those of the network where a group "
    "spans nodes") {
  cost::Profile profile = measured_profile();
  profile.collective.base.provenance = Provenance::datasheet;
  profile.collective.network_step.provenance = Provenance::assumed;
  const auto weakest = [&](const std::vector<int>& group) {
    return weakest_provenance(profile, measured_stack(), program_of(cost::KernelKind::gemm, group),
                              gpus_of_node);
  };
  CHECK(weakest({3}).provenance == Provenance::measured);
  CHECK(weakest({0, 7}).profile == std::vector<std::string>{"/collective/base"});
  CHECK(weakest({7, 8}).profile == std::vector<std::string>{"/collective/network_step"});
}

TEST_CASE("the slow-down of kernels counts where communication can run beside them") {
  cost::Profile profile = measured_profile();
  profile.collective.compute_slowdown = cost::Constant<double>{};  // assumed
  const auto weakest = [&](cost::CollectiveKind kind, program::Stream stream,
                           const std::vector<int>& ranks = {0, 1}) {
    program::Program program = program_of(cost::KernelKind::gemm, ranks);
    program.blocks[0].tasks.push_back(
        {.name = "c", .work = program::Collective{.kind = kind}, .stream = stream});
    return weakest_provenance(profile, measured_stack(), program, gpus_of_node).profile;
  };
  using cost::CollectiveKind;
  using program::Stream;
  const std::vector<std::string> slowdown = {"/collective/compute_slowdown"};
  CHECK(weakest(CollectiveKind::all_reduce, Stream::gradient_communication) == slowdown);
  CHECK(weakest(CollectiveKind::send, Stream::send_forward) == slowdown);
  CHECK(weakest(CollectiveKind::all_reduce, Stream::compute) != slowdown);
  CHECK(weakest(CollectiveKind::to_host, Stream::copy_out) != slowdown);
  CHECK(weakest(CollectiveKind::all_gather, Stream::gradient_communication, {0}) != slowdown);
}

TEST_CASE("a scalar of the stack counts always") {
  cost::Stack stack = measured_stack();
  stack.slowdown.provenance = Provenance::fitted;
  const auto weakest = weakest_provenance(measured_profile(), stack,
                                          program_of(cost::KernelKind::gemm, {0}), gpus_of_node);
  CHECK(weakest.provenance == Provenance::fitted);
  CHECK(weakest.stack == std::vector<std::string>{"/slowdown"});
}

TEST_CASE(
    "what a communicator takes counts where two GPUs communicate, a workspace where it is said") {
  cost::Profile profile = measured_profile();
  profile.memory.communicator->peer.provenance = Provenance::assumed;
  cost::Stack stack = measured_stack();
  const auto weakest = [&](const std::vector<int>& group) {
    return weakest_provenance(profile, stack, program_of(cost::KernelKind::gemm, group),
                              gpus_of_node);
  };
  CHECK(weakest({0}).provenance == Provenance::measured);
  CHECK(weakest({0, 1}).profile == std::vector<std::string>{"/communicator/peer"});
  stack.memory.workspace = cost::Constant<Bytes>{
      .value = 8_MB, .provenance = Provenance::published, .source = "somebody"};
  CHECK(weakest({0}).stack == std::vector<std::string>{"/memory/workspace"});
}

TEST_CASE("constants of NCCL's model count where a stack uses it, those of closed form where not") {
  cost::Profile profile = measured_profile();
  profile.collective.nccl = cost::NcclConstants{};  // assumed
  cost::Stack stack = measured_stack();
  const auto program = program_of(cost::KernelKind::gemm, {0, 1});
  CHECK(weakest_provenance(profile, stack, program, gpus_of_node).provenance ==
        Provenance::measured);
  stack.nccl = "2.12.12";
  const auto weakest = weakest_provenance(profile, stack, program, gpus_of_node);
  CHECK(weakest.provenance == Provenance::assumed);
  CHECK(std::ranges::count(weakest.profile, "/collective/nccl/added") == 1);
  profile = measured_profile();
  profile.collective.node_step.provenance = Provenance::assumed;
  profile.collective.node_link_latency = cost::Constant<Seconds>{};  // assumed
  CHECK(weakest_provenance(profile, stack, program, gpus_of_node).provenance ==
        Provenance::measured);
  CHECK(weakest_provenance(profile, measured_stack(), program, gpus_of_node).profile ==
        std::vector<std::string>{"/collective/node_step", "/collective/node_link_latency"});
  profile = measured_profile();
  profile.collective.nvlink_efficiency.provenance = Provenance::assumed;  // both
  for (const cost::Stack& either : {stack, measured_stack()})
    CHECK(weakest_provenance(profile, either, program, gpus_of_node).profile ==
          std::vector<std::string>{"/collective/nvlink_efficiency"});
}
