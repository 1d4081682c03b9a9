// The order of ranks, as Megatron-LM's --order has it, and how many there can be.
#include "strategies/parallel/rank_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// Strategies that have ranks, innermost first.
std::vector<const Strategy*> with_ranks() {
  std::vector<const Strategy*> some;
  for (const Strategy& entry : all()) {
    if (!entry.ranks.name.empty()) some.insert(some.begin(), &entry);
  }
  std::stable_partition(some.begin(), some.end(),
                        [](const Strategy* one) { return !one->ranks.outermost; });
  return some;
}

/// Which ranks stand next to each other, innermost first; kinds left out follow in their usual
/// order.
struct RankOrder {
  std::vector<std::string> kinds;
};

/// "tp-dp-pp"
Format<std::vector<std::string>> kinds_of_ranks() {
  return {{text().schema.set("pattern", "^[a-z]+(-[a-z]+)*$"), "kinds with `-` between"},
          [](const JsonReader& reader) {
            const std::vector<std::string> known = rank_kinds();
            std::vector<std::string> order;
            std::istringstream text(reader.text());
            for (std::string kind; std::getline(text, kind, '-');) {
              if (std::ranges::count(known, kind) == 0 || std::ranges::count(order, kind) > 0)
                reader.fail(
                    fmt::format("each of {} once at most, such as \"tp-dp-pp\" (expert ranks "
                                "are those of dp that follow each other)",
                                fmt::join(known, ", ")));
              order.push_back(kind);
            }
            return order;
          }};
}

/// Devices of all ranks: an int holds them, and every product of some of their degrees.
void check_devices(const Options& options, const JsonReader& strategy) {
  double within_stages = 1;
  for (const Strategy& entry : all()) {
    if (entry.ranks.size != nullptr && !entry.ranks.outermost)
      within_stages *= entry.ranks.size(options);
  }
  if (within_stages * options.pipeline > 1'000'000)
    strategy.fail(rank_keys() + " of at most 1000000");
  const std::vector<int>& replicas = options.stages.replicas;
  if (within_stages * std::accumulate(replicas.begin(), replicas.end(), 0.0) > 1'000'000)
    strategy.at("replicas_per_stage").fail("replicas on at most 1000000 devices");
}

/// Kinds that are left out have one rank.
void check_order(Options& options, const JsonReader& strategy) {
  check_devices(options, strategy);
  const std::vector<std::string> order = options.own.of<RankOrder>().kinds;
  if (order.empty()) return;
  for (const std::string& kind : rank_kinds()) {
    if (std::ranges::count(order, kind) == 0 && size_of(options, kind) > 1)
      strategy.at("rank_order").fail(kind + " in the order, of which there are several ranks");
  }
}

}  // namespace

std::vector<std::string> rank_kinds() {
  std::vector<std::string> kinds;
  for (const Strategy* one : with_ranks()) kinds.push_back(one->ranks.name);
  return kinds;
}

std::string rank_keys() {
  std::string keys;
  for (const Strategy* one : with_ranks()) keys += (keys.empty() ? "" : " x ") + one->key();
  return keys;
}

std::string degrees_of(const Options& options) {
  std::string degrees;
  for (const Strategy* one : with_ranks()) {
    const int size = one->ranks.size(options);
    if (size == 1) continue;
    const bool by_stages = one->ranks.outermost && size != options.pipeline;
    degrees += (degrees.empty() ? "" : " x ") + (by_stages ? "GPUs of stages" : one->key()) + " " +
               std::to_string(size);
  }
  return degrees.empty() ? "data 1" : degrees;
}

std::vector<std::string> order_of_ranks(const Options& options) {
  std::vector<std::string> order = options.own.of<RankOrder>().kinds;
  for (const std::string& kind : rank_kinds()) {
    if (std::ranges::count(order, kind) == 0) order.push_back(kind);
  }
  return order;
}

int size_of(const Options& options, const std::string& kind) {
  for (const Strategy& entry : all()) {
    if (entry.ranks.name == kind) return entry.ranks.size(options);
  }
  expects(false, "some strategy has ranks of the kind");
  return 0;
}

int stride_of(const Options& options, const std::string& kind) {
  int devices = 1;
  for (const std::string& one : order_of_ranks(options)) {
    if (one == kind) break;
    devices *= size_of(options, one);
  }
  return devices;
}

int devices_of(const Options& options) {
  int devices = 1;
  for (const std::string& kind : rank_kinds()) devices *= size_of(options, kind);
  return devices;
}

Strategy rank_order() {
  return {{{"rank_order", own(&RankOrder::kinds), kinds_of_ranks(),
            "which ranks stand on neighbouring GPUs, innermost first, as Megatron-LM's `--order`: "
            "tensor, Ulysses (`sp`), context, axial, data (expert ranks innermost among them), "
            "pipeline; kinds with one rank may be left out",
            "tp-sp-cp-dap-dp-pp"}},
          [](Plan& /*plan*/, const Options& /*options*/) {},  // the others ask for strides
          &check_order};
}

}  // namespace stratagem::strategies
