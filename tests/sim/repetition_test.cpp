// What is jumped is what would have been simulated, to the picosecond.
#include "sim/repetition.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cost/profile.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sanitized.hpp"
#include "tests/sim/priced_by_name.hpp"
#include "tests/sim/with_host.hpp"

namespace stratagem::sim::repetition_test {
namespace {

/// Any of them, by a generator that all platforms have.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(static_cast<int>(all.size()))];
  }

 private:
  std::mt19937 engine_;
};

struct Case {
  std::string strategy;
  int micro_batches = 0;
  cost::Stack stack;
  double bandwidth = 0;  ///< bytes per second
  double slowdown = 0;
  int launch_queue = 0;
  std::int64_t host = 0;  ///< of how many a launch takes one part of what its name says; 0: no time
  int durations = 0;      ///< 0: what names say; 1: all alike; 2: one of two; 3: nothing
  bool folded = false;
  bool server = false;  ///< a DGX-2H, whose links take time before they carry anything
  bool serial = false;
};

const std::vector<std::string>& parts_of_strategies() {
  static const std::vector<std::string> all = {
      "",
      R"(, "tensor": 2)",
      R"(, "tensor": 2, "sequence_parallel": true)",
      R"(, "data": 2)",
      R"(, "data": 2, "zero": 1, "overlap_gradients": true)",
      R"(, "data": 2, "zero": 2)",
      R"(, "data": 2, "zero": 3)",
      R"(, "data": 2, "zero": {"stage": 3, "prefetch": 2})",
      R"(, "recompute": "full")",
      R"(, "swap": 2)",
      R"(, "swap": {"layers": 2, "to": "peer"})",
      R"(, "context": 2)",
      R"(, "tensor": 2, "embedding": "all", "head": "all")",
      R"(, "token_slices": [12, 8])",
      R"(, "recompute": {"every": 2})",
      R"(, "offload": "optimizer")",
      R"(, "layers_per_stage": [3, 5])",
      R"(, "layers_per_stage": [1, 3, 2, 2])",
      R"(, "ranks_per_device": 2)"};
  return all;
}

Case random_case(Random& random) {
  using cost::HostWaits;
  Case one;
  const std::string schedule = random.of(std::vector<std::string>{
      "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "chimera", "dualpipe",
      "pipedream", "pipedream-2bw", "hanayo", "bpipe"});
  one.strategy = R"({"pipeline": )" + std::to_string(2 << random.below(2)) + R"(, "schedule": ")" +
                 schedule + "\"" + random.of(parts_of_strategies()) + "}";
  one.micro_batches = random.below(4) > 0 ? 8 * (1 + random.below(6)) : 5 + random.below(40);
  one.stack = lowering::plain_stack();
  for (const HostWaits rule :
       {HostWaits::each_micro_batch, HostWaits::each_pass, HostWaits::each_received_pass,
        HostWaits::each_exchange, HostWaits::each_launch}) {
    if (random.below(6) == 0) one.stack.rules.emplace_back(rule);
  }
  if (random.below(3) == 0) one.stack.rules.emplace_back(cost::StageShares::activations);
  if (random.below(3) == 0)
    one.stack.rules.emplace_back(cost::ShardCollectives{.gathers_wait = true});
  if (random.below(3) == 0) {
    one.stack.rules.emplace_back(cost::OperatorKernels{.of = "softmax", .launches = 3});
    one.stack.rules.emplace_back(cost::OperatorKernels{.of = "gelu", .synchronizations = 1});
  }
  one.bandwidth = random.of(std::vector<double>{1e12, 1e13, 1e14, 1e30});
  one.slowdown = random.of(std::vector<double>{0, 0, 0.15, 0.6});
  one.launch_queue = random.of(std::vector<int>{3, 20, 150, 1024});
  one.host = random.of(std::vector<int>{0, 1, 2, 10, 1000});
  one.durations = random.of(std::vector<int>{0, 0, 0, 1, 2, 3});
  one.folded = random.below(2) == 0;
  one.server = random.below(4) == 0;
  one.serial = random.below(8) == 0;
  return one;
}

Ticks duration_in(const Case& one, const std::string& name) {
  const Ticks named = duration(name);
  const std::int64_t unit = one.server ? 20'000 : 1;  // as long as messages between real GPUs
  switch (one.durations) {
    case 1:
      return {100 * unit};
    case 2:
      return {named.count % 2 * 100 * unit};
    case 3:
      return {};
    default:
      return {named.count * unit};
  }
}

Price price_in(const Case& one, const program::Task& task) {
  const Ticks device = duration_in(one, task.name);
  const std::int64_t launch =
      one.host == 0 ? 0 : duration_in(one, task.name + " host").count / one.host;
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  const int launches = kernel == nullptr ? 1 : kernel->launches;
  return {.device = device,
          .host = {launches * launch},
          .first_launch = {launch},
          .last_kernel = {device.count / std::max(launches, 1)},
          .idle = {device.count / 5}};
}

Timeline run_of(const Case& one, const program::Program& program, Repeats repeats) {
  const auto devices = static_cast<int>(program.devices.size());
  static const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  Folding folding = one.server
                        ? fold(program, cluster("dgx-2h", 1), profile.collective, one.folded)
                        : fold(program, with_host(devices, {one.bandwidth}, true, {one.bandwidth}),
                               ideal_network(), one.folded);
  folding.launch_queue = one.launch_queue;
  folding.compute_slowdown = one.slowdown;
  folding.serial = one.serial;
  const Prices prices =
      price(program, [&](const program::Task& task) { return price_in(one, task); });
  return run(program, folding, prices, 2 + program.lag, repeats);
}

/// A timeline, or why there is none.
struct Answer {
  std::optional<Timeline> timeline;
  std::string refused;
};
Answer answer(const Case& one, const program::Program& program, Repeats repeats) {
  try {
    return {run_of(one, program, repeats), ""};
  } catch (const InputError& error) {
    return {std::nullopt, error.what()};
  }
}

void check_same(const Timeline& jumped, const Timeline& simulated) {
  CHECK(simulated.jumped == 0);
  CHECK(jumped.iteration_ends == simulated.iteration_ends);
  for (std::size_t a = 0; a < jumped.actors.size(); ++a) {
    CHECK(jumped.times[a].begins == simulated.times[a].begins);
    CHECK(jumped.times[a].ends == simulated.times[a].ends);
    CHECK(jumped.times[a].launches == simulated.times[a].launches);
  }
}

/// How many cases went as said.
struct Counts {
  int all = 0, jumped = 0, shared = 0, slowed = 0, waiting = 0, short_queues = 0, ties = 0,
      refused = 0;
};

}  // namespace

TEST_CASE("what is jumped is what is simulated, on random plans, clusters and hosts") {
  model::GptConfig config = lowering::small_gpt;
  config.layers = 8;
  config.tied = false;
  config.batch = 4;
  const model::Graph graph = model::gpt(config);
  Random random(25);
  Counts counts;
  for (std::size_t i = 0; i < 1000; i += stride(20)) {
    const Case one = random_case(random);
    INFO(i << ": " << one.strategy << ", " << one.micro_batches << " micro-batches");
    std::optional<program::Program> program;
    try {
      program =
          lowering::lower(lowering::plan_of(graph, one.strategy, one.micro_batches), one.stack);
    } catch (const InputError&) {  // what does not go together
      continue;
    }
    const Answer ours = answer(one, *program, Repeats::jumped);
    const Answer all = answer(one, *program, Repeats::simulated);
    REQUIRE(ours.refused == all.refused);
    if (!ours.timeline) {
      ++counts.refused;
      continue;
    }
    const Timeline* jumped = &*ours.timeline;
    check_same(*jumped, *all.timeline);
    ++counts.all;
    if (jumped->jumped == 0) continue;
    ++counts.jumped;
    if (one.server || one.bandwidth < 1e30) ++counts.shared;
    if (one.slowdown > 0) ++counts.slowed;
    if (!one.stack.rules.empty()) ++counts.waiting;
    if (one.launch_queue < 1024) ++counts.short_queues;
    if (one.durations > 0) ++counts.ties;
  }
  WARN("of " << counts.all << " runs " << counts.jumped << " jump, of these " << counts.shared
             << " with shared links, " << counts.slowed << " with slowed kernels, "
             << counts.waiting << " with rules of the stack, " << counts.short_queues
             << " with short queues, " << counts.ties
             << " with tasks that take equally long or nothing; " << counts.refused << " refused");
  const int share = static_cast<int>(stride(20));
  CHECK(counts.jumped >= 400 / share);
  CHECK(counts.shared >= 100 / share);
  CHECK(counts.slowed >= 100 / share);
}

}  // namespace stratagem::sim::repetition_test
