// Optimizer states and parameters on drives: how long an iteration takes, and what lies where.
#include "topology/drives.hpp"

#include "sim/host_memory.hpp"
#include "tests/catch.hpp"
#include "tests/sim/unit_chain.hpp"
#include "tests/sim/with_host.hpp"

namespace stratagem::sim {
namespace {

using program::Category;
using program::Residence;

constexpr double layer_states = 12 * 64;  // bytes of Adam's in mixed precision

/// In units: forward and backward of a layer, its step, its weights over PCIe, and its states from
/// the drives and to them; 0 of the last three: infinitely fast.
struct Costs {
  double forward = 0;
  double backward = 0;
  double step = 0;
  double copy = 0;
  double read = 0;
  double write = 0;
};

BytesPerSecond rate(double bytes, double units) {
  return {bytes / std::max(units * 1e-12 * static_cast<double>(unit), 1e-40)};
}

topology::Cluster server(int ranks, const Costs& costs, int drives) {
  const topology::Cluster host = with_host(ranks, rate(128, costs.copy), false);
  const topology::Drives kind{.capacity = 1_TB,
                              .read = rate(layer_states / drives, costs.read),
                              .write = rate(layer_states / drives, costs.write),
                              .provenance = "assumed",
                              .source = ""};
  return {
      topology::with_drives(host.design(), drives, kind, topology::processors_of(host.design())),
      1,
      {1e30},
      0_s};
}

/// A chain of layers on one micro-batch; its weights are those of the layers and a shift an eighth
/// of one, which steps first: w = layers + 1/8 layers all together.
class OnDrives {
 public:
  OnDrives(int layers, const std::string& strategy, const Costs& costs, int ranks = 1,
           int drives = 2)
      : program(UnitPipeline::lowered(strategy, chain(layers), 1)) {
    const Folding folding = fold(program, server(ranks, costs, drives), ideal_network(), false);
    const Prices prices = price(program, [&](const program::Task& task) {
      const bool layer = task.name.starts_with("product");
      const double time = layer && task.stream == program::Stream::host ? costs.step
                          : task.name == "product"                      ? costs.forward
                          : task.name == "product.B"                    ? costs.backward
                                                                        : 0;
      return Price{.device = {static_cast<std::int64_t>(time * unit)}};
    });
    timeline = run(program, folding, prices, 4);
  }

  [[nodiscard]] double period() const {
    const std::vector<Instant>& ends = timeline.iteration_ends;
    return static_cast<double>((ends.back() - ends[ends.size() - 2]).count) /
           static_cast<double>(unit);
  }

  [[nodiscard]] std::vector<HostMemory> memory(Residence where, int per_server) const {
    return host_memory(program, timeline, per_server, where);
  }

  program::Program program;
  Timeline timeline;
};

std::string states_there(int ranks = 1) {
  return R"({"offload": {"optimizer": "drives"}, "zero": 2, "data": )" + std::to_string(ranks) +
         "}";
}

std::string all_there(int prefetch, int ranks = 1) {
  return R"({"offload": {"optimizer": "drives", "parameters": "drives"}, "data": )" +
         std::to_string(ranks) + R"(, "zero": {"stage": 3, "prefetch": )" +
         std::to_string(prefetch) + "}}";
}

Bytes in(const HostMemory& host, Category category) {
  return host.peak.by_category[static_cast<std::size_t>(category)];
}

}  // namespace

// Three streams in order, w = L + 1/8, the shift first, whose step takes nothing. Where one of the
// three takes longest it is never idle from its first layer on; the others add what stands before
// the first and behind the last of it.
TEST_CASE("steps from drives take as long as the slowest of reading, stepping and writing") {
  for (const int layers : {1, 2, 5, 9}) {
    const double l = layers;
    const double w = l + 0.125;
    INFO(layers << " layers");
    CHECK(close(OnDrives(layers, states_there(), {.step = 3, .read = 8, .write = 2}).period(),
                w * 8 + 3 + 2, 1e-5));
    CHECK(close(OnDrives(layers, states_there(), {.step = 8, .read = 3, .write = 2}).period(),
                3.0 / 8 + 3 + l * 8 + 2, 1e-5));
    CHECK(close(OnDrives(layers, states_there(), {.step = 3, .read = 2, .write = 8}).period(),
                2.0 / 8 + 2 + 3 + l * 8, 1e-5));
  }
}

// Before them are the passes, and the gradients' way out; the last weights' way back is beside the
// last write.
TEST_CASE("reads begin when all gradients have left, and the iteration ends with the last write") {
  const double w = 4.125;
  CHECK(close(OnDrives(4, states_there(), {2, 3, 3, 5, 8, 2}).period(),
              4 * (2 + 3) + w * 5 + w * 8 + 3 + 5, 1e-5));
  CHECK(close(OnDrives(4, states_there(), {2, 3, 3, 1, 8, 2}).period(),
              4 * (2 + 3) + w * 1 + w * 8 + 3 + 2, 1e-5));
}

TEST_CASE("the GPUs of a server share its drives, however many these are") {
  const Costs costs{.step = 0, .read = 8, .write = 6};
  const double alone = OnDrives(4, states_there(), costs).period();
  CHECK(close(alone, 4.125 * 8 + 6, 1e-5));
  // Each of the ranks reads and writes its part of the same bytes.
  for (const int ranks : {2, 4}) {
    for (const int drives : {1, 2, 8})
      CHECK(close(OnDrives(4, states_there(ranks), costs, ranks, drives).period(), alone, 1e-5));
  }
}

TEST_CASE("drives that take no time are the memory of the host") {
  for (const Costs& costs : {Costs{2, 3, 7, 5}, Costs{6, 6, 1, 5}, Costs{0, 0, 7, 5}}) {
    const auto same = [&](const std::string& drives, const std::string& memory) {
      INFO(drives);
      CHECK(close(OnDrives(4, drives, costs).period(), OnDrives(4, memory, costs).period(), 1e-9));
    };
    same(states_there(), R"({"offload": "optimizer", "zero": 2})");
    same(R"({"offload": {"optimizer": "drives", "gradients": "drives"}, "zero": 2})",
         R"({"offload": "optimizer", "zero": 2})");
    same(R"({"offload": {"optimizer": "memory"}, "zero": 2})",
         R"({"offload": "optimizer", "zero": 2})");
    for (const std::string prefetch : {"0", "1", "3"}) {
      const std::string zero = R"("zero": {"stage": 3, "prefetch": )" + prefetch + "}}";
      same(R"({"offload": {"optimizer": "drives", "parameters": "drives"}, )" + zero,
           R"({"offload": "parameters", )" + zero);
      same(R"({"offload": {"optimizer": "memory", "parameters": "drives"}, )" + zero,
           R"({"offload": "parameters", )" + zero);
    }
    same(R"({"offload": {"optimizer": "drives", "delayed_update": true}, "zero": 2})",
         R"({"offload": {"of": "optimizer", "delayed_update": true}, "zero": 2})");
  }
}

// 2 of 12 bytes more are read for each step, and 2 written when a layer's gradients have left; the
// passes take longest.
TEST_CASE("gradients on drives are written behind the passes and read beside the states") {
  const std::string all =
      R"({"offload": {"optimizer": "drives", "gradients": "drives"}, "zero": 2, "bucket": "1 B"})";
  CHECK(close(OnDrives(4, all, {9, 9, 0, 0, 6, 3}).period(), 4 * 18 + 1.125 * 0.5 + 4.125 * 7 + 3,
              1e-5));
}

// Delayed steps and what stands around them run beside an iteration.
TEST_CASE(
    "delayed steps from drives are hidden by an iteration that is as long, and else hide it") {
  const std::string delayed =
      R"({"offload": {"optimizer": "drives", "delayed_update": true}, "zero": 2})";
  CHECK(close(OnDrives(4, delayed, {20, 30, 1, 0, 8, 2}).period(), 4 * (20 + 30), 1e-5));
  CHECK(close(OnDrives(4, delayed, {1, 1, 1, 0, 8, 2}).period(), 4.125 * 8 + 1 + 2, 1e-5));
}

// 2 of 12 bytes: a sixth of a layer's states for each pass; then 12 are read and 14 written.
TEST_CASE("parameters on drives are read for both passes, and written beside their states") {
  const double w = 4.125;
  for (const int prefetch : {0, 1, 3}) {
    INFO("prefetch " << prefetch);
    CHECK(close(OnDrives(4, all_there(prefetch), {.step = 1, .read = 6, .write = 3}).period(),
                2 * w * 1 + w * 6 + 1 + 3 * 14.0 / 12, 1e-5));
  }
  // Hidden behind passes that take longer, but for the first two segments: the shift and a layer.
  CHECK(close(OnDrives(4, all_there(1), {9, 9, 1, 0, 6, 3}).period(),
              1.125 * 1 + 4 * 18 + w * 6 + 1 + 3 * 14.0 / 12, 1e-5));
  // States in memory: nothing is read for steps; 2 bytes are written beside the next one.
  const std::string weights =
      R"({"offload": {"optimizer": "memory", "parameters": "drives"}, "zero": 3})";
  CHECK(close(OnDrives(4, weights, {.step = 5, .read = 6, .write = 12}).period(),
              2 * w * 1 + 4 * 5 + 12.0 / 6, 1e-5));
}

TEST_CASE("what a drive's link carries is what tasks read and write, in equal parts") {
  const double parameters = 8 + 4 * 64;
  for (const int ranks : {1, 2, 4}) {
    const OnDrives one(4, all_there(1, ranks), {1, 1, 1, 1, 1, 1}, ranks, 3);
    cost::Collectives collectives(server(ranks, {}, 3), ideal_network());
    std::map<topology::Direction, double> carried;
    for (std::size_t device = 0; device < one.program.devices.size(); ++device) {
      const auto& sequence = one.program.sequences[one.program.devices[device].sequence];
      for (const program::Call& call : sequence.calls) {
        for (const program::Task& task : one.program.blocks[call.block].tasks) {
          const auto* work = std::get_if<program::Collective>(&task.work);
          if (work == nullptr || !cost::concerns_drives(work->kind)) continue;
          const auto route =
              collectives.route(work->kind, {static_cast<int>(device)}, work->payload);
          for (const cost::LinkLoad& load : route.loads)
            carried[load.direction] += load.load * work->payload.value;
        }
      }
    }
    const auto& links = collectives.cluster().links();
    int counted = 0;
    for (const auto& [direction, bytes] : carried) {
      if (links[direction.link].kind != topology::LinkKind::drive) continue;
      ++counted;
      const double each = direction.forward ? 2 * 2 + 12 : 12 + 2;
      CHECK(std::abs(bytes - each * parameters / 3) < 1e-6);
    }
    CHECK(counted == 2 * 3);
  }
}

// 12 bytes of states a parameter leave the host's memory but for those of the segments on their
// way.
TEST_CASE("drives keep 12 bytes a parameter, 14 with its weights, and the host those under way") {
  const double parameters = 8 + 4 * 64;
  for (const int ranks : {1, 2}) {
    const OnDrives states(4, states_there(ranks), {1, 1, 2, 1, 8, 4}, ranks);
    const auto drives = states.memory(Residence::drives, ranks);
    REQUIRE(drives.size() == 1);
    CHECK(drives[0].peak.total.value == 12 * parameters);
    CHECK(in(drives[0], Category::optimizer_states).value == 12 * parameters);
    const auto hosts = states.memory(Residence::host, ranks);
    REQUIRE(hosts.size() == 1);
    CHECK(in(hosts[0], Category::gradients).value == 2 * parameters);
    CHECK(in(hosts[0], Category::optimizer_states) == Bytes{});
    // A layer is read while the one before steps and is written, which takes less.
    CHECK(in(hosts[0], Category::staged).value == 2 * layer_states);
    const OnDrives all(4, all_there(1, ranks), {1, 1, 2, 1, 2, 9}, ranks);
    CHECK(all.memory(Residence::drives, ranks)[0].peak.total.value == 14 * parameters);
    // Writes take longest: three at once, of 14 bytes a parameter.
    CHECK(in(all.memory(Residence::host, ranks)[0], Category::staged).value == 3 * 14 * 64);
    CHECK(in(all.memory(Residence::host, ranks)[0], Category::parameters) == Bytes{});
  }
  const OnDrives memory(4, R"({"offload": "optimizer"})", {1, 1, 1, 1, 1, 1});
  CHECK(memory.memory(Residence::drives, 1).empty());
}

}  // namespace stratagem::sim
