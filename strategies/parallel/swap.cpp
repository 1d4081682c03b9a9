// Swap: activations of layers wait in the memory of the host, or of other GPUs.
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// An op-trans of the first layers: what a layer's forward pass keeps is copied to the host after
/// it, and back before its backward pass, while other layers run. Source: Rhu et al., vDNN, MICRO
/// 2016, arXiv:1602.08124. Or to the GPUs of other stages: Zhou et al., MPress, HPCA 2023.
void swap_layers(Plan& plan, const Options& options) {
  std::vector<int> layers = model::layers(plan.graph());
  const auto count = static_cast<int>(layers.size());
  if (options.swap.layers > count) {
    throw InputError("", "", "at most the model's " + std::to_string(count) + " layers",
                     std::to_string(options.swap.layers));
  }
  if (options.swap.layers == 0) return;
  layers.resize(options.swap.layers);
  const bool to_peers = options.swap.to == Keep::Where::peers;
  plan.residency.keep({.what = Keep::What::activations,
                       .segments = std::move(layers),
                       .where = options.swap.to,
                       .ahead = options.swap.prefetch,
                       .said = to_peers ? path_of(&Options::swap) + "/to" : ""});
}

}  // namespace

Strategy swap_activations() {
  const auto layers = whole(0);
  const OptionList<SwapOptions> more = {
      {"layers", &SwapOptions::layers, layers, "as the number alone", must_be_there},
      {"to", &SwapOptions::to,
       choice<Keep::Where>({{"host", Keep::Where::host},
                            {"peer", Keep::Where::peers},
                            {"drives", Keep::Where::drives}}),
       "`peer`: the GPUs of other stages, which the fastest links lead to, then those with the "
       "most idle memory (MPress); `drives`: the server's, behind its memory (SSDTrain)"},
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
