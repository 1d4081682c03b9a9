// What a timeline leaves out is what would have been simulated, to the picosecond and the byte.
#include "sim/repetition.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cost/profile.hpp"
#include "program/shorter.hpp"
#include "sim/device_memory.hpp"
#include "sim/engine.hpp"
#include "sim/host_memory.hpp"
#include "sim/repeated_buffers.hpp"
#include "sim/steady.hpp"
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
  int pass = 0;           ///< of how many launches' time a pass takes the host
  std::int64_t host = 0;  ///< of how many a launch takes one part of what its name says; 0: no time
  int durations = 0;      ///< 0: what names say; 1: all alike; 2: one of two; 3: nothing
  bool folded = false;
  bool server = false;  ///< a DGX-2H, whose links take time before they carry anything
  bool serial = false;
  int memory = 0;       ///< MB of a device
  int spare = 0;        ///< micro-batches that loops keep
  bool rounds = false;  ///< are rounds left out, too?
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
      "combined-1f1b", "pipedream", "pipedream-2bw", "hanayo", "bpipe"});
  one.strategy = R"({"pipeline": )" + std::to_string(2 << random.below(2)) + R"(, "schedule": ")" +
                 schedule + "\"" + random.of(parts_of_strategies()) + "}";
  one.micro_batches = random.below(4) > 0 ? 16 * (1 + random.below(6)) : 5 + random.below(80);
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
  one.pass = random.of(std::vector<int>{0, 0, 1, 20});
  if (one.pass > 0) one.stack.rules.emplace_back(cost::PassWork{one.pass});
  one.launch_queue = random.of(std::vector<int>{3, 20, 150, 1024});
  one.host = random.of(std::vector<int>{0, 1, 2, 10, 1000});
  one.durations = random.of(std::vector<int>{0, 0, 0, 1, 2, 3});
  one.folded = random.below(2) == 0;
  one.server = random.below(4) == 0;
  one.serial = random.below(8) == 0;
  one.memory = random.of(std::vector<int>{1'000'000, 1'000'000, 60, 40});
  one.spare = random.of(std::vector<int>{4, 6, 8});
  one.rounds = random.below(2) == 0;
  using Allocator = cost::MemoryFacts::Allocator;
  one.stack.memory.allocator =
      random.of(std::vector<Allocator>{Allocator::caching, Allocator::expandable});
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

cost::Profile profile_of(const Case& one) {
  cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  profile.memory.size.value = Bytes{1e6 * one.memory};
  return profile;
}

/// A case made ready to run.
struct Ready {
  Ready(const Case& one, const program::Program& program) : profile(profile_of(one)) {
    const auto devices = static_cast<int>(program.devices.size());
    folding = one.server ? fold(program, cluster("dgx-2h", 1), profile.collective, one.folded)
                         : fold(program, with_host(devices, {one.bandwidth}, true, {one.bandwidth}),
                                ideal_network(), one.folded);
    folding.launch_queue = one.launch_queue;
    folding.pass = {one.pass * one.host * 1000};
    folding.compute_slowdown = one.slowdown;
    folding.serial = one.serial;
    prices = price(program, [&](const program::Task& task) { return price_in(one, task); });
  }
  cost::Profile profile;
  Folding folding;
  Prices prices;
};

constexpr int iterations = 3;

/// Of the shortest program that repeats, if one does.
std::optional<Timeline> shortest(const Case& one, const Ready& ready,
                                 const program::Program& program) {
  for (int spare = one.spare; spare < 64; spare *= 2) {
    std::optional<program::Shorter> shorter = program::shorter(program, spare);
    if (!shorter) return std::nullopt;
    std::optional<Timeline> timeline =
        run_shorter(program, std::move(*shorter), ready.folding, ready.prices, iterations,
                    one.rounds ? Repeats::left_out : Repeats::simulated);
    if (timeline && buffers_repeat(program, *timeline)) return timeline;
  }
  return std::nullopt;
}

/// Begins or ends of a queue's tasks, or launches.
using Times = std::vector<Instant>;

/// What a list of the shorter program's times is in the whole one: the first `end` as they are,
/// those of the last period as often again as periods are left out, then the rest.
Times in_full(const Times& own, std::size_t begin, std::size_t end, const LeftOut& left_out,
              Ticks later) {
  const Ticks period = left_out.to - left_out.from;
  Times full(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(end));
  for (Instant& when : full) when = when + later;
  for (std::size_t i = 0; i < left_out.periods * (end - begin); ++i)
    full.push_back(full[full.size() - (end - begin)] + period);
  for (std::size_t i = end; i < own.size(); ++i)
    full.push_back(own[i] + later + left_out.periods * period);
  return full;
}

/// Of a queue, in a round.
Times times_of(const Timeline& timeline, std::size_t actor, int queue, const Times& all) {
  Times result;
  const FlatTasks& tasks = timeline.tasks[timeline.actors[actor].sequence];
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].queue == queue) result.push_back(all[i]);
  }
  return result;
}

void check_actor(const Timeline& own, const Timeline& whole, std::size_t a, std::size_t round,
                 Ticks later) {
  const LeftOut& left_out = own.left_out[round];
  const ActorTimes& ours = own.times[a];
  const ActorTimes& all = whole.times[a];
  for (std::size_t q = 0; q < own.queues[own.actors[a].sequence].size(); ++q) {
    const auto of = [&](const Timeline& timeline, const Times& times) {
      return times_of(timeline, a, static_cast<int>(q), times);
    };
    const Times ends = of(own, ours.ends[round]);
    const auto until = [&](Instant when) {
      return static_cast<std::size_t>(
          std::ranges::count_if(ends, [&](Instant end) { return end <= when; }));
    };
    const std::size_t first = until(left_out.from), last = until(left_out.to);
    CHECK(in_full(ends, first, last, left_out, later) == of(whole, all.ends[round]));
    CHECK(in_full(of(own, ours.begins[round]), first, last, left_out, later) ==
          of(whole, all.begins[round]));
  }
  if (round > 0) return;
  const auto& [begin, end] = left_out.launched[a];
  CHECK(in_full(ours.launches[0], begin, end, left_out, {}) == all.launches[0]);
}

/// Nothing follows the last round, so it may end sooner than its copy.
std::size_t rounds_alike(const Timeline& own) {
  return own.times.front().begins.size() - (own.repeats_rounds() ? 1 : 0);
}

void check_same_ends(const Timeline& own, const Timeline& whole) {
  const std::size_t alike = rounds_alike(own) - own.lag;
  for (std::size_t i = 0; i < alike; ++i) CHECK(own.iteration_ends[i] == whole.iteration_ends[i]);
  if (own.repeats_rounds()) CHECK(own.iteration_ends[alike] >= whole.iteration_ends[alike]);
}

void check_same(const Timeline& own, const Timeline& whole) {
  CHECK(whole.left_out.empty());
  check_same_ends(own, whole);
  const LeftOut& any = own.left_out.front();
  if (any.from == any.to) return;  // nothing takes any time
  for (std::size_t a = 0; a < own.actors.size(); ++a) {
    Ticks later;
    for (std::size_t round = 0; round < rounds_alike(own); ++round) {
      check_actor(own, whole, a, round, later);
      later =
          later + own.left_out[round].periods * (own.left_out[round].to - own.left_out[round].from);
    }
  }
}

void check_same_figures(const Case& one, const Ready& ready, const program::Program& program,
                        const Timeline& own, const Timeline& whole) {
  const auto memory = [&](const Timeline& timeline) {
    auto devices = device_memory(program, timeline, ready.profile, one.stack, {});
    for (DeviceMemory& device : devices) device.peak.task = -1;  // its number: `at` names it
    return devices;
  };
  const std::vector<DeviceMemory> ours = memory(own), all = memory(whole);
  REQUIRE(ours.size() == all.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    INFO(ours[i].at << " at " << ours[i].peak.when.picoseconds << ", reserved "
                    << ours[i].reserved.value << "; " << all[i].at << " at "
                    << all[i].peak.when.picoseconds << ", reserved " << all[i].reserved.value);
    CHECK(ours[i] == all[i]);
  }
  for (const program::Residence where : {program::Residence::host, program::Residence::drives}) {
    const std::vector<HostMemory> hosts = host_memory(program, own, 4, where);
    const std::vector<HostMemory> all_hosts = host_memory(program, whole, 4, where);
    REQUIRE(hosts.size() == all_hosts.size());
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      CHECK(hosts[h].peak == all_hosts[h].peak);
      CHECK(hosts[h].count == all_hosts[h].count);
    }
  }
  std::vector<MemoryPeak> peaks;
  for (const DeviceMemory& device : all) peaks.push_back(device.peak);
  const Metrics metrics_of_own = metrics(program, own, peaks),
                of_all = metrics(program, whole, peaks);
  CHECK(metrics_of_own.iteration_time.value == of_all.iteration_time.value);
  CHECK(metrics_of_own.makespan.value == of_all.makespan.value);
  if (of_all.iteration_time == Seconds{}) return;  // no shares of that
  CHECK(metrics_of_own.bubble_fraction == of_all.bubble_fraction);
  CHECK(metrics_of_own.exposed_communication.value == of_all.exposed_communication.value);
  CHECK(metrics_of_own.communication == of_all.communication);
}

/// However many iterations it takes.
void check_same_steady(const program::Program& program, const Ready& ready) {
  const auto played = [&](Repeats repeats) {
    return run_until_steady(program, ready.folding, ready.prices, repeats);
  };
  const Timeline ours = played(Repeats::left_out), all = played(Repeats::simulated);
  CHECK(ours.measured_period().count == all.measured_period().count);
  CHECK(ours.steady == all.steady);
}

/// How many cases went as said.
struct Counts {
  int all = 0, repeated = 0, shared = 0, slowed = 0, waiting = 0, short_queues = 0, ties = 0;
};

/// Eight layers, whose table is not tied.
model::Graph eight_layers() {
  model::GptConfig config = lowering::small_gpt;
  config.layers = 8;
  config.tied = false;
  config.batch = 4;
  return model::gpt(config);
}

/// Empty where the parts of a case do not go together.
std::optional<program::Program> lowered(const model::Graph& graph, const Case& one) {
  try {
    return lowering::lower(lowering::plan_of(graph, one.strategy, one.micro_batches), one.stack);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("what is left out is what is simulated, on random plans, clusters and hosts") {
  const model::Graph graph = eight_layers();
  Random random(25);
  Counts counts;
  for (std::size_t i = 0; i < 1000; i += stride(20)) {
    const Case one = random_case(random);
    INFO(i << ": " << one.strategy << ", " << one.micro_batches << " micro-batches");
    const std::optional<program::Program> program = lowered(graph, one);
    if (!program) continue;
    const Ready ready(one, *program);
    ++counts.all;
    const std::optional<Timeline> own = shortest(one, ready, *program);
    if (!own) continue;
    const Timeline whole = run(*program, ready.folding, ready.prices, iterations);
    check_same(*own, whole);
    check_same_figures(one, ready, *program, *own, whole);
    ++counts.repeated;
    if (one.server || one.bandwidth < 1e30) ++counts.shared;
    if (one.slowdown > 0) ++counts.slowed;
    if (!one.stack.rules.empty()) ++counts.waiting;
    if (one.launch_queue < 1024) ++counts.short_queues;
    if (one.durations > 0) ++counts.ties;
  }
  WARN("of " << counts.all << " runs " << counts.repeated << " repeat, of these " << counts.shared
             << " with shared links, " << counts.slowed << " with slowed kernels, "
             << counts.waiting << " with rules of the stack, " << counts.short_queues
             << " with short queues, " << counts.ties
             << " with tasks that take equally long or nothing");
  const int share = sanitized ? 40 : 1;  // of 50 cases: some parts may be missing
  CHECK(counts.repeated >= 400 / share);
  CHECK(counts.shared >= 100 / share);
  CHECK(counts.slowed >= 100 / share);
}

TEST_CASE("rounds that go on as the round before have the times that are simulated") {
  const model::Graph graph = eight_layers();
  Random random(26);
  Counts counts;
  int without_stages = 0;
  for (std::size_t i = 0; i < 1000; i += stride(40)) {
    Case one = random_case(random);
    one.micro_batches = 1 + one.micro_batches / 4;
    const bool stages = random.below(6) > 0;
    if (!stages) one.strategy = R"({"data": 1)" + random.of(parts_of_strategies()) + "}";
    INFO(i << ": " << one.strategy << ", " << one.micro_batches << " micro-batches");
    const std::optional<program::Program> program = lowered(graph, one);
    if (!program) continue;
    const Ready ready(one, *program);
    const auto played = [&](Repeats repeats) {
      return run(*program, ready.folding, ready.prices, 4, repeats);
    };
    const Timeline ours = played(Repeats::left_out), all = played(Repeats::simulated);
    ++counts.all;
    CHECK(all.simulated_rounds == 4 + program->lag);
    check_same_ends(ours, all);
    for (std::size_t a = 0; a < ours.times.size(); ++a) {
      for (std::size_t round = 0; round < rounds_alike(ours); ++round) {
        CHECK(ours.times[a].begins[round] == all.times[a].begins[round]);
        CHECK(ours.times[a].ends[round] == all.times[a].ends[round]);
      }
      CHECK(ours.times[a].launches == all.times[a].launches);
    }
    const Metrics metrics_of_ours = metrics(*program, ours), of_all = metrics(*program, all);
    CHECK(metrics_of_ours.iteration_time.value == of_all.iteration_time.value);
    if (of_all.iteration_time == Seconds{}) continue;
    CHECK(metrics_of_ours.bubble_fraction == of_all.bubble_fraction);
    CHECK(metrics_of_ours.exposed_communication.value == of_all.exposed_communication.value);
    if (!sanitized && i % 3 == 0) check_same_steady(*program, ready);
    if (!ours.repeats_rounds()) continue;
    ++counts.repeated;
    if (!stages) ++without_stages;
    if (one.server || one.bandwidth < 1e30) ++counts.shared;
    if (one.slowdown > 0) ++counts.slowed;
    if (one.launch_queue < 1024) ++counts.short_queues;
  }
  WARN("of " << counts.all << " runs " << counts.repeated << " repeat rounds, of these "
             << without_stages << " without stages, " << counts.shared << " with shared links, "
             << counts.slowed << " with slowed kernels, " << counts.short_queues
             << " with short queues");
  const int share = sanitized ? 80 : 1;
  CHECK(counts.repeated >= 400 / share);
  CHECK(without_stages >= 40 / share);
  CHECK(counts.shared >= 100 / share);
  CHECK(counts.slowed >= 100 / share);
}

}  // namespace stratagem::sim::repetition_test
