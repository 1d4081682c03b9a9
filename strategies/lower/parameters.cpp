// Collects what the forward blocks of all sites read.
#include "strategies/lower/parameters.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// The grid of a site is one more place where the parameter is; all places must agree on its parts.
void hold(Holding& holding, const Layout& layout, const Grid& grid, const std::string& name) {
  if (holding.grids.empty()) holding.layout = layout;
  const bool same_axes = holding.grids.empty() || holding.grids.front().axes == grid.axes;
  if (holding.layout != layout || !same_axes) {
    throw InputError("", "", "every operator to see the same part of parameter " + name, "");
  }
  const auto place =
      std::ranges::lower_bound(holding.grids, grid.first_device, {}, &Grid::first_device);
  if (place == holding.grids.end() || *place != grid) holding.grids.insert(place, grid);
}

}  // namespace

Parameters::Parameters(const Plan& plan, const Stages& stages, const Blocks& blocks) {
  for (const Site& site : stages.sites()) {
    for (const int segment : plan.stages[site.stage]) {
      for (const auto& [place, layout] : blocks.of(segment).forward->lowered.parameters) {
        const TensorId parameter = stages.facts(segment).tensors[place];
        hold(holdings_[parameter], layout, site.grid, plan.graph().tensors[parameter].name);
      }
    }
  }
  for (const Host& host : stages.hosts()) {
    std::map<TensorId, LocalHolding>& here = on_host_.emplace_back();
    for (const int site : host.sites) {
      for (const int segment : plan.stages[stages.sites()[site].stage]) {
        for (const auto& [place, layout] : blocks.of(segment).forward->lowered.parameters) {
          const TensorId parameter = stages.facts(segment).tensors[place];
          LocalHolding& local = here[parameter];
          local.holding = &holdings_.at(parameter);
          const auto at = std::ranges::lower_bound(local.segments, segment);
          if (at == local.segments.end() || *at != segment) local.segments.insert(at, segment);
        }
      }
    }
  }
}

}  // namespace stratagem::strategies
