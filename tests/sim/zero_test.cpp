// Gathers of weights ahead of the segments that read them: when they begin, and what they hold.
#include <map>

#include "sim/memory_changes.hpp"
#include "tests/catch.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {
namespace {

using program::Category;

/// A chain of layers whose forward pass takes `forward` units and whose weight takes `gather` units
/// to gather on two ranks; backward passes take no time.
struct Gathered {
  Gathered(int layers, int prefetch, int forward, double gather, const cost::Stack& stack = {},
           int launch = 0, int stage = 3)
      : Gathered(layers, ahead(stage, prefetch), forward, gather, stack, launch) {}
  Gathered(int layers, const std::string& zero, int forward, double gather,
           const cost::Stack& stack = {}, int launch = 0, int ranks = 2)
      : program(UnitPipeline::lowered(
            R"({"data": )" + std::to_string(ranks) + R"(, "zero": )" + zero + "}", chain(layers), 1,
            stack)) {
    // Each of two ranks sends the half of 8 x 8 numbers of two bytes.
    const BytesPerSecond link = 64_B / Seconds{gather * 1e-12 * static_cast<double>(unit)};
    const Folding folding = fold(program, instant_cluster(ranks, link), ideal_network(), false);
    Prices prices = unit_prices(program, {.forward = forward, .input = 0});
    for (std::size_t b = 0; b < prices.size(); ++b) {
      for (std::size_t t = 0; t < prices[b].size(); ++t) {
        const program::Task& task = program.blocks[b].tasks[t];
        if (task.name.starts_with("parts of "))
          prices[b][t].host = {launch * std::get<cost::Kernel>(task.work).launches * unit};
      }
    }
    timeline = run(program, folding, prices, 2);
  }

  static std::string ahead(int stage, int prefetch) {
    return R"({"stage": )" + std::to_string(stage) + R"(, "prefetch": )" +
           std::to_string(prefetch) + "}";
  }

  /// Units from the end of one iteration to the end of the next.
  [[nodiscard]] double period() const {
    const auto& ends = timeline.iteration_ends;
    return static_cast<double>((ends[1] - ends[0]).count) / static_cast<double>(unit);
  }

  /// Units from the begin of an iteration until the last layer's forward pass has ended.
  [[nodiscard]] double forward_pass(int iteration = 0) const {
    const FlatTasks& tasks = timeline.tasks[0];
    Instant end{0};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Task& task = program.blocks[tasks[i].block].tasks[tasks[i].task];
      if (task.name == "product") end = std::max(end, timeline.times[0].ends[iteration][i]);
    }
    const Instant begin = iteration == 0 ? Instant{0} : timeline.iteration_ends[iteration - 1];
    return static_cast<double>((end - begin).count) / static_cast<double>(unit);
  }

  [[nodiscard]] bool is_gathered(int buffer) const {
    const auto changes = memory_changes(program, timeline, 0);
    return std::ranges::any_of(changes, [&](const MemoryChange& change) {
      return change.buffer == buffer && change.category == Category::gathered_parameters;
    });
  }

  program::Program program;
  Timeline timeline;
};

constexpr double shift = 1.0 / 8;  // the first segment's weight has 8 numbers

}  // namespace

TEST_CASE("without prefetch a layer's gather begins when the layer before has run") {
  const Gathered plan(5, 0, 3, 2);
  CHECK(close(plan.forward_pass(), 2 * shift + 5 * (2 + 3), 1e-5));
}

TEST_CASE("with prefetch the shorter of gathers and layers hides behind the longer") {
  for (const int prefetch : {1, 2, 7}) {
    CHECK(close(Gathered(5, prefetch, 3, 2).forward_pass(), 2 * shift + 2 + 5 * 3, 1e-5));
    CHECK(close(Gathered(5, prefetch, 2, 3).forward_pass(), 3 * shift + 5 * 3 + 2, 1e-5));
  }
}

// The host launches a copy for each rank while a gather runs, and the layer behind them.
TEST_CASE("a host that copies every rank's part holds up what it launches next") {
  cost::Stack stack;
  stack.rules = {
      cost::ShardCollectives{.by_weight = true, .gathers_wait = true, .kernels_per_rank = 3}};
  const auto layer = [](double gather, double copies, int forward) {
    return std::max(gather, copies) + forward;
  };
  for (const int launch : {0, 1, 2, 10}) {
    INFO(launch);
    const Gathered plan(5, 0, 3, 8, stack, launch);
    const double copies = 2 * 3 * launch;
    CHECK(close(plan.forward_pass(), layer(1, copies, 0) + 5 * layer(8, copies, 3), 1e-5));
  }
}

TEST_CASE("an iteration's first gather waits for the steps of the one before") {
  for (const int prefetch : {0, 1, 7}) {
    const Gathered plan(5, prefetch, 3, 2);
    CHECK(close(plan.forward_pass(1), plan.forward_pass(0), 1e-5));
  }
}

TEST_CASE("prefetching k layers holds the weights of k + 1") {
  for (const int prefetch : {0, 1, 2, 3}) {
    const Gathered plan(8, prefetch, 5, 1);
    const MemoryPeak peak = memory_peak(plan.program, plan.timeline, 0);
    CHECK(peak.highest[static_cast<std::size_t>(Category::gathered_parameters)] ==
          (prefetch + 1) * 128_B);
  }
}

TEST_CASE("parameters that stay whole after the forward pass are all there at its end") {
  for (const int prefetch : {0, 1, 3}) {
    for (const int layers : {1, 4, 8}) {
      const Gathered plan(layers,
                          R"({"stage": 3, "reshard_after_forward": false, "prefetch": )" +
                              std::to_string(prefetch) + "}",
                          5, 1);
      const MemoryPeak peak = memory_peak(plan.program, plan.timeline, 0);
      CHECK(peak.highest[static_cast<std::size_t>(Category::gathered_parameters)] ==
            layers * 128_B + 16_B);
    }
  }
}

// Half of every layer, and one layer that is whole, at the end of the forward pass.
TEST_CASE("secondary parts are there beside what is whole") {
  for (const int layers : {2, 4, 8}) {
    const Gathered plan(layers, R"({"stage": 3, "reshard_after_forward": 2, "prefetch": 0})", 5, 1,
                        {}, 0, 4);
    const MemoryPeak peak = memory_peak(plan.program, plan.timeline, 0);
    CHECK(peak.highest[static_cast<std::size_t>(Category::gathered_parameters)] ==
          layers * 64_B + 8_B + 128_B);
  }
}

TEST_CASE("a host that runs ahead comes to a gather when the plan has made room for it") {
  for (const int prefetch : {0, 1, 2, 3}) {
    const Gathered plan(8, prefetch, 5, 1);
    std::vector<MemoryChange> changes = memory_changes(plan.program, plan.timeline, 0);
    std::ranges::stable_sort(changes, {}, [](const MemoryChange& change) {
      return std::pair(change.task, change.bytes < Bytes{});
    });
    std::map<int, Bytes> held;  // by buffer of a gathered weight: taken, and not free again yet
    std::multimap<Instant, int> freed;
    Bytes now, highest;
    for (const MemoryChange& change : changes) {
      const Instant clock = plan.timeline.times[0].launches[0][change.task];
      for (; !freed.empty() && freed.begin()->first <= clock; freed.erase(freed.begin()))
        now -= held.at(freed.begin()->second);
      if (!plan.is_gathered(change.buffer)) continue;
      if (change.bytes < Bytes{}) {
        freed.emplace(change.ready, change.buffer);
      } else {
        now += held[change.buffer] = change.bytes;
        highest = std::max(highest, now);
      }
    }
    CHECK(highest == (prefetch + 1) * 128_B);
  }
}

// What ranks step in shards, they hold whole: only its gathers move, not what lives when.
TEST_CASE(
    "weights stepped in shards are gathered after the steps, or beside the next forward pass") {
  for (const int stage : {1, 2}) {
    INFO(stage);
    const Gathered after(5, std::to_string(stage), 3, 2);
    CHECK(close(after.forward_pass(1), 5 * 3, 1e-5));
    for (const int prefetch : {0, 1, 7}) {
      INFO(prefetch);
      const Gathered before(5, prefetch, 3, 2, {}, 0, stage);
      CHECK(close(before.forward_pass(1), Gathered(5, prefetch, 3, 2).forward_pass(), 1e-5));
      // All of them, less what is not hidden.
      const double hidden = (5 + shift) * 2 - (before.forward_pass(1) - 5 * 3);
      CHECK(close(after.period() - before.period(), hidden, 1e-5));
      CHECK(memory_peak(before.program, before.timeline, 0).highest ==
            memory_peak(after.program, after.timeline, 0).highest);
    }
  }
}

}  // namespace stratagem::sim
