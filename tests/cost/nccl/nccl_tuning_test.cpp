// Predicted latency and bandwidth of every algorithm and protocol, against NCCL 2.28.9's own.
#include <cmath>
#include <map>
#include <set>

#include "cost/nccl/tuning.hpp"
#include "tests/catch.hpp"
#include "tests/cost/nccl/nccl_machines.hpp"
#include "tests/sanitized.hpp"

using namespace stratagem;
using namespace stratagem::cost;
using namespace stratagem::cost::nccl;

namespace {

const std::map<std::string, CollectiveKind> kinds{{"AllReduce", CollectiveKind::all_reduce},
                                                  {"AllGather", CollectiveKind::all_gather},
                                                  {"ReduceScatter", CollectiveKind::reduce_scatter},
                                                  {"Broadcast", CollectiveKind::broadcast},
                                                  {"Reduce", CollectiveKind::reduce}};

/// As NCCL writes it: "Tree/LL128".
std::string name_of(const Estimate& estimate) {
  std::string name = to_text(estimate.algorithm);
  name.front() = static_cast<char>(std::toupper(name.front()));
  return name + "/" + to_text(estimate.protocol);
}

/// Rounded to the one decimal of NCCL's tables.
bool same_number(double predicted, double tabled) { return std::abs(predicted - tabled) < 0.0501; }

void check_kind(const JsonReader& table, CollectiveKind kind, const Communicator& communicator) {
  std::set<std::string> found;
  for (const Estimate& estimate : estimates(kind, communicator, constants_of("2.28.9"))) {
    const std::string name = name_of(estimate);
    INFO(name << ": " << estimate.latency / 1_us << " us, " << estimate.bandwidth / 1_GBps);
    found.insert(name);
    REQUIRE(table.has(name));
    const auto numbers = table.at(name).elements();
    CHECK(same_number(estimate.latency / 1_us, numbers[0].number()));
    CHECK(same_number(estimate.bandwidth / 1_GBps, numbers[1].number()));
  }
  const auto listed = table.keys();
  CHECK(found == std::set(listed.begin(), listed.end()));
}

Communicator first_of(const topology::Cluster& cluster, int gpus, const std::string& version) {
  return Communicators(cluster, constants_of(version)).of(first_gpus(gpus));
}

Estimate chosen(const Communicator& communicator, Bytes payload, const std::string& version) {
  const CollectiveKind kind = CollectiveKind::all_reduce;
  return choose(estimates(kind, communicator, constants_of(version)), kind, payload, communicator);
}

}  // namespace

TEST_CASE("latency and bandwidth of every way are NCCL's own on 34 machines and parts of them") {
  const std::vector<SolvedMachine> machines = solved_machines();
  for (std::size_t i = 0; i < machines.size(); i += stride(6)) {
    const SolvedMachine& machine = machines[i];
    INFO(machine.text());
    const topology::Cluster cluster = machine.cluster();
    const Communicator communicator =
        Communicators(cluster, constants_of("2.28.9")).of(machine.ranks());
    for (const std::string& name : machine.solved.at("model").keys()) {
      INFO(name);
      check_kind(machine.solved.at("model").at(name), kinds.at(name), communicator);
    }
  }
}

TEST_CASE("on a V100 server NCCL 2.12 leaves LL128 for Simple where measured times jump") {
  // Latencies differ by 1.6 us + (n-1) 3 us; bandwidths by 8 %. vTrain's all-reduces change their
  // slope between the sizes below: after 4 MiB with 4 GPUs, 3 with 6, 8 with 7. With 8 GPUs they do
  // after 13 MiB and the model after 14, with 5 after 4 or 5 and the model after 6.
  const topology::Cluster cluster = preset_named("dgx-1v", 1);
  for (const auto& [gpus, last] : std::map<int, int>{{3, 1}, {4, 4}, {6, 3}, {7, 8}, {8, 14}}) {
    INFO(gpus << " GPUs");
    const Communicator communicator = first_of(cluster, gpus, "2.12.12");
    CHECK(chosen(communicator, last * 1_MiB, "2.12.12").protocol == Protocol::ll128);
    CHECK(chosen(communicator, (last + 1) * 1_MiB, "2.12.12").protocol == Protocol::simple);
  }
}

TEST_CASE("on an A100 server NCCL 2.18 leaves LL128 for Simple where measured times jump") {
  // vTrain's all-reduces jump after 5 MiB with 4 GPUs, 10 with 5, 14 with 6, 19 with 7, 23 with 8.
  const topology::Cluster cluster = preset_named("dgx-a100", 1);
  for (const auto& [gpus, last] : std::map<int, int>{{4, 5}, {5, 10}, {6, 14}, {7, 19}, {8, 23}}) {
    INFO(gpus << " GPUs");
    const Communicator communicator = first_of(cluster, gpus, "2.18.6");
    CHECK(chosen(communicator, last * 1_MiB, "2.18.6").protocol == Protocol::ll128);
    CHECK(chosen(communicator, (last + 1) * 1_MiB, "2.18.6").protocol == Protocol::simple);
  }
}

TEST_CASE("eight H100 reduce large payloads in the switch, and small ones over rings") {
  const Communicator communicator = first_of(preset_named("dgx-h100", 1), 8, "2.28.9");
  CHECK(chosen(communicator, 1_GiB, "2.28.9").algorithm == Algorithm::nvls);
  CHECK(chosen(communicator, 32_KiB, "2.28.9").protocol == Protocol::ll);
}

TEST_CASE("many nodes reduce small payloads over trees and large ones over rings") {
  const topology::Cluster cluster = preset_named("dgx-a100", 16);
  const Communicator communicator = first_of(cluster, 128, "2.28.9");
  CHECK(chosen(communicator, 1_MiB, "2.28.9").algorithm == Algorithm::tree);
  CHECK(chosen(communicator, 4_GiB, "2.28.9").algorithm == Algorithm::ring);
}

TEST_CASE("a tree has the shares of its bandwidth that tuning.cc states for powers of two") {
  // treeCorrectionFactor of NCCL 2.21 and 2.28, in tenths, from 64 bytes to 512 MiB;
  // ncclTopoGetAlgoTime applies none to what is no all-reduce.
  const std::map<Protocol, std::vector<int>> tenths{
      {Protocol::ll, {10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10}},
      {Protocol::ll128,
       {10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10}},
      {Protocol::simple, {9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9}}};
  const Communicator communicator = first_of(preset_named("dgx-a100", 1), 8, "2.28.9");
  for (const auto& [protocol, shares] : tenths) {
    const Estimate tree{Algorithm::tree, protocol, 10_us, 10_GBps};
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const Bytes payload = std::exp2(i) * 64_B;
      for (const Bytes one : {payload, 1.99 * payload}) {
        const Estimate now = at_payload(tree, CollectiveKind::all_reduce, one, communicator);
        CHECK(close(now.bandwidth, shares[i] * 1_GBps, 1e-12));
        CHECK(now.latency == 10_us);
      }
      CHECK(at_payload(tree, CollectiveKind::broadcast, payload, communicator).bandwidth ==
            10_GBps);
    }
  }
}

TEST_CASE("one GPU on each of many nodes gathers with PAT where the version has it") {
  const topology::Cluster cluster = preset_named("dgx-h100", 8);
  std::vector<int> ranks;
  for (int node = 0; node < 8; ++node) ranks.push_back(8 * node);
  for (const auto& [version, has] : {std::pair{"2.28.9", true}, std::pair{"2.18.6", false}}) {
    const Constants& constants = constants_of(version);
    const auto ways = estimates(CollectiveKind::all_gather,
                                Communicators(cluster, constants).of(ranks), constants);
    CHECK((std::ranges::find(ways, Algorithm::pat, &Estimate::algorithm) != ways.end()) == has);
  }
}

TEST_CASE("a version stands for those after it up to the next one that is known") {
  CHECK(constants_of("2.28.9").version == "2.28.9");
  CHECK(constants_of("2.19.3").version == "2.18.6");
  CHECK(constants_of("2.4.8").version == "2.8.4");
  CHECK(constants_of("2.30.7").version == "2.28.9");
  CHECK_FALSE(is_version("new"));
  CHECK_FALSE(is_version("2.28"));
  CHECK_FALSE(is_version("2.28.9 "));
}
