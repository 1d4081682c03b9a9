// Fills buckets in the order in which the cells of a host complete gradients.
#include "strategies/lower/gradients.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/input_error.hpp"
#include "strategies/lower/gradient_group.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// The gradient of one parameter when its last weight-gradient operator has run.
struct Completed {
  TensorId gradient = -1;
  int lag = 0;
  int cell = -1;
  int segment = 0;
  int task = 0;
  Layout layout;
};

/// The last of the cells and segments (`last_cells` by site) that add to the gradient of a parameter on a host. Within a
/// cell segments run backwards.
Completed completed(const Plan& plan, const Stages& stages, const Blocks& blocks, int host,
                    TensorId parameter, const LocalHolding& local,
                    const std::vector<ScheduledCell>& cells, const std::map<int, int>& last_cells) {
  Completed last{.gradient = plan.graph().gradient_of[parameter]};
  for (const auto& [site, cell] : last_cells) {
    const Site& s = stages.sites()[site];
    if (cell < 0) continue;
    for (const int segment : local.segments) {
      const NumberedBlock* block = blocks.with_weights(segment);
      if (stages.of(segment) != s.stage || block == nullptr) continue;
      if (!block->parts.empty())
        block = &block->on(s.copy, s.grid.position(stages.hosts()[host].devices.front()));
      const auto place = stages.facts(segment).place.at(last.gradient);
      const auto& layouts = block->lowered.gradients;
      const auto layout = layouts.find(place);
      if (layout == layouts.end() && !block->lowered.gradient_masks.contains(place)) continue;
      const auto rank = [](const Completed& c) { return std::tuple(c.lag, c.cell, -c.segment); };
      Completed here{.gradient = last.gradient,
                     .lag = cells[cell].lag,
                     .cell = cell,
                     .segment = segment,
                     .task = block->lowered.last_writer.at(place),
                     .layout = layout == layouts.end() ? Layout{} : layout->second};
      if (last.cell < 0 || rank(last) < rank(here)) last = std::move(here);
    }
  }
  return last;
}

std::vector<int> reduced_axes(const Completed& gradient, const Layout& parameter,
                              const std::string& name) {
  std::vector<int> axes;
  for (std::size_t axis = 0; axis < gradient.layout.size(); ++axis) {
    const AxisRole role = gradient.layout[axis];
    if (role == parameter[axis]) continue;
    if (role.dim != AxisRole::partial || parameter[axis].dim != AxisRole::replica) {
      throw InputError(
          "", "",
          "the gradient of " + name + " to lie as the parameter does, or to be partial sums", "");
    }
    axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

void add(Bucket& bucket, const Completed& gradient, Bytes bytes) {
  bucket.cell = gradient.cell;
  bucket.segment = gradient.segment;
  bucket.gradients.push_back(gradient.gradient);
  bucket.sizes.push_back(bytes);
  bucket.bytes += bytes;
}

/// Of devices; different from all keys of axes and grids.
std::vector<int> key_of(const std::vector<int>& ranks) {
  std::vector<int> key = {-1};
  key.insert(key.end(), ranks.begin(), ranks.end());
  return key;
}

/// Grids by their first devices, which tell those of one parameter apart.
std::vector<int> key_of(const std::vector<Grid>& grids) {
  std::vector<int> key;
  key.reserve(grids.size());
  for (const Grid& grid : grids) key.push_back(grid.first_device);
  return key;
}

}  // namespace

int last_weight_cell(const Plan& plan, int stage, int copy,
                     const std::vector<ScheduledCell>& cells) {
  int last = -1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i].cell;
    if (cell.stage != stage || plan.copy_of(stage, cell.micro_batch) != copy) continue;
    const bool split = plan.splits_backward(stage, cell.micro_batch);
    if (cell.pass != (split ? CellPass::weight : CellPass::backward)) continue;
    if (last < 0 || cells[last].lag <= cells[i].lag) last = static_cast<int>(i);
  }
  return last;
}

GradientBuckets gradient_buckets(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                 const Parameters& parameters, int host,
                                 const std::vector<ScheduledCell>& cells) {
  std::map<int, int> last_cells;
  for (const int site : stages.hosts()[host].sites) {
    const Site& s = stages.sites()[site];
    last_cells[site] = last_weight_cell(plan, s.stage, s.copy, cells);
  }
  std::vector<std::pair<Completed, const LocalHolding*>> gradients;
  for (const auto& [parameter, local] : parameters.on(host)) {
    if (plan.graph().gradient_of[parameter] < 0) continue;
    Completed one = completed(plan, stages, blocks, host, parameter, local, cells, last_cells);
    if (one.cell >= 0) gradients.emplace_back(std::move(one), &local);
  }
  std::ranges::stable_sort(gradients, {}, [](const auto& pair) {
    const Completed& c = pair.first;
    return std::tuple(c.lag, c.cell, -c.segment, c.task);
  });
  GradientBuckets result;
  std::map<std::vector<int>, Bucket> open;
  std::map<std::vector<int>, Bucket> across;
  const auto close = [&](const std::vector<int>& key) {
    const Bucket& bucket = open.at(key);
    if (!plan.gradients.bucket || bucket.bytes < *plan.gradients.bucket) return;
    result.along_axes.push_back(bucket);
    open.erase(key);
  };
  for (const auto& [gradient, local] : gradients) {
    const model::Tensor& tensor = plan.graph().tensors[gradient.gradient];
    const Holding& holding = *local->holding;
    if (!holding.masks.empty()) {
      const int device = stages.hosts()[host].devices.front();
      const std::vector<int> ranks =
          gradient_group(plan, stages, blocks, holding, gradient.gradient, device);
      if (ranks.size() < 2) continue;
      const std::vector<int> key = key_of(ranks);
      const bool along = holding.sites.size() == 1;
      Bucket& bucket = along ? open[key] : across[key];
      bucket.ranks = ranks;
      add(bucket, gradient, local->bytes);
      if (along) close(key);
      continue;
    }
    const Bytes bytes = local_bytes(tensor, gradient.layout, holding.grids.front());
    const std::vector<int> axes = reduced_axes(gradient, holding.layout, tensor.name);
    if (holding.grids.size() > 1) {
      Bucket& bucket = across[key_of(holding.grids)];
      bucket.grids = holding.grids;
      add(bucket, gradient, bytes);
    }
    if (axes.empty()) continue;
    Bucket& bucket = open[axes];
    bucket.axes = axes;
    add(bucket, gradient, bytes);
    close(axes);
  }
  for (auto& [group, bucket] : open) result.along_axes.push_back(std::move(bucket));
  for (auto& [key, bucket] : across) result.across_grids.push_back(std::move(bucket));
  return result;
}

}  // namespace stratagem::strategies
