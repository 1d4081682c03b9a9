// Swap: activations of layers wait in the memory of the host, or of other GPUs.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/input_error.hpp"
#include "placement/grid.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

int stage_of(const Plan& plan, int segment) {
  const auto has = [&](const std::vector<int>& stage) {
    return std::ranges::count(stage, segment) > 0;
  };
  return static_cast<int>(std::ranges::find_if(plan.stages, has) - plan.stages.begin());
}

/// The devices of a stage, by copy.
std::vector<std::vector<int>> devices_of(const Plan& plan, int stage) {
  const model::Segment& segment = plan.graph().segments[plan.stages[stage].front()];
  const Plan::Placement& placement = plan.placement(segment.forward.front());
  if (!placement.listed.empty()) return placement.listed;
  std::vector<std::vector<int>> devices;
  for (const int first : placement.first_devices)
    devices.push_back(placement::Grid{first, placement.axes, {}}.devices());
  return devices;
}

/// Chooses which stage holds what another one swaps.
class Peers {
 public:
  Peers(const Plan& plan, const Options& options) : plan_(plan), options_(options) {}

  int of(int stage) {
    const auto [known, fresh] = chosen_.try_emplace(stage, -1);
    if (fresh) {
      known->second = best_for(stage);
      ++taken_[known->second];
    }
    return known->second;
  }

 private:
  /// A later stage if there is one, since it keeps fewer micro-batches at once under 1F1B; of those
  /// the one that is reached fastest; of equally fast ones the one that holds something for fewest
  /// stages, then the last. How much memory is free is not looked at.
  int best_for(int stage) {
    using Score = std::tuple<bool, BytesPerSecond, int, int>;
    std::optional<Score> best;
    for (int peer = 0; peer < static_cast<int>(plan_.stages.size()); ++peer) {
      if (const auto speed = speed_between(stage, peer))
        best = std::max(best, std::optional<Score>({peer > stage, *speed, -taken_[peer], peer}));
    }
    if (best) return std::get<3>(*best);
    throw InputError("", "/to", "a stage of as many other devices, to hold what is swapped",
                     "none for stage " + std::to_string(stage));
  }

  /// The slowest link between devices that stand for each other; nullopt where two stages have not
  /// as many devices, or share one.
  [[nodiscard]] std::optional<BytesPerSecond> speed_between(int stage, int peer) const {
    const auto from = devices_of(plan_, stage), to = devices_of(plan_, peer);
    BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
    for (std::size_t copy = 0; copy < std::lcm(from.size(), to.size()); ++copy) {
      const std::vector<int>& here = from[copy % from.size()];
      const std::vector<int>& there = to[copy % to.size()];
      const auto is_there = [&](int device) { return std::ranges::count(there, device) > 0; };
      if (here.size() != there.size() || std::ranges::any_of(here, is_there)) return std::nullopt;
      for (std::size_t i = 0; options_.link && i < here.size(); ++i)
        slowest = std::min(slowest, options_.link(here[i], there[i]));
    }
    return slowest;
  }

  const Plan& plan_;
  const Options& options_;
  std::map<int, int> chosen_;  ///< by stage
  std::map<int, int> taken_;   ///< by peer: how many stages it holds something of
};

/// An op-trans of the first layers (segments between the first and the last): what a layer's
/// forward pass keeps is copied to the host after it, and back before its backward pass, while
/// other layers run. Source: Rhu et al., vDNN, MICRO 2016, arXiv:1602.08124. Or to the GPUs of
/// another stage, see Peers: Zhou et al., MPress, HPCA 2023.
void swap_layers(Plan& plan, const Options& options) {
  const auto segments = static_cast<int>(plan.graph().segments.size());
  if (options.swap.layers > std::max(segments - 2, 0)) {
    throw InputError("", "", "at most the model's " + std::to_string(segments - 2) + " layers",
                     std::to_string(options.swap.layers));
  }
  Peers peers(plan, options);
  const bool to_peer = options.swap.to == Keep::Where::stage;
  std::map<int, std::vector<int>> by_peer;  // one place is all that is not a stage's
  for (int segment = 1; segment + 1 < segments && segment <= options.swap.layers; ++segment)
    by_peer[to_peer ? peers.of(stage_of(plan, segment)) : 0].push_back(segment);
  for (auto& [peer, layers] : by_peer) {
    plan.residency.keep({.what = Keep::What::activations,
                         .segments = std::move(layers),
                         .where = options.swap.to,
                         .stage = peer,
                         .ahead = options.swap.prefetch});
  }
}

}  // namespace

Strategy swap_activations() {
  const auto layers = whole(0);
  const OptionList<SwapOptions> more = {
      {"layers", &SwapOptions::layers, layers, "as the number alone", must_be_there},
      {"to", &SwapOptions::to,
       choice<Keep::Where>({{"host", Keep::Where::host},
                            {"peer", Keep::Where::stage},
                            {"drives", Keep::Where::drives}}),
       "`peer`: the GPUs of a later stage, which the fastest links lead to (MPress); `drives`: the "
       "server's, behind its memory (SSDTrain)"},
      {"prefetch", &SwapOptions::prefetch, whole(0, 1'000),
       "layers whose activations come back ahead of the one that runs"}};
  const auto alone = converted<SwapOptions>(
      layers, [](std::int64_t n) { return SwapOptions{.layers = static_cast<int>(n)}; });
  return {{{"swap", &Options::swap, either(alone, {object_of(more)}),
            "how many of the first layers keep their activations in the memory of the host, or of "
            "other GPUs, between their passes",
            "0"}},
          &swap_layers};
}

}  // namespace stratagem::strategies
