// Fills buckets in the order in which the cells of a device class complete gradients.
#include "lowering/weights/gradients.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/blocks/waiting_gradients.hpp"
#include "lowering/stages/shards.hpp"
#include "lowering/weights/gradient_group.hpp"

namespace stratagem::lowering {

using placement::AxisRole;
using placement::Grid;
using placement::Layout;
using strategies::Plan;

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

/// What the blocks of a segment say of a gradient on a device of a class: nothing if they add
/// nothing to it.
const LoweredBlock* adding(const Stages& stages, const Blocks& blocks, int device_class,
                           const Replica& replica, int segment, TensorId gradient) {
  const LoweredBlock* last = nullptr;
  for (const NumberedBlock* block : blocks.with_weights(segment)) {
    if (!block->parts.empty())
      block =
          &block->on(replica.copy,
                     replica.grid.position(stages.device_classes()[device_class].devices.front()));
    const auto place = stages.facts(segment).place.at(gradient);
    const LoweredBlock& lowered = block->lowered;
    if (lowered.gradients.contains(place) || lowered.gradient_masks.contains(place))
      last = &lowered;
  }
  return last;
}

/// The last of the cells and segments (`last_cells` by replica) that add to the gradient of a
/// parameter on a device class. Within a cell segments run backwards; what B adds is counted as
/// W's, which follows.
Completed completed(const Plan& plan, const Stages& stages, const Blocks& blocks, int device_class,
                    TensorId parameter, const LocalHolding& local,
                    const std::vector<ScheduledCell>& cells, const std::map<int, int>& last_cells) {
  Completed last{.gradient = plan.graph().gradient_of[parameter]};
  for (const auto& [replica, cell] : last_cells) {
    const Replica& s = stages.replicas()[replica];
    if (cell < 0) continue;
    for (const int segment : local.segments) {
      if (stages.of(segment) != s.stage) continue;
      const LoweredBlock* lowered = adding(stages, blocks, device_class, s, segment, last.gradient);
      if (lowered == nullptr) continue;
      const auto place = stages.facts(segment).place.at(last.gradient);
      const auto layout = lowered->gradients.find(place);
      const auto rank = [](const Completed& c) { return std::tuple(c.lag, c.cell, -c.segment); };
      Completed here{.gradient = last.gradient,
                     .lag = cells[cell].lag,
                     .cell = cell,
                     .segment = segment,
                     .task = lowered->last_writer.at(place),
                     .layout = layout == lowered->gradients.end() ? Layout{} : layout->second};
      if (last.cell < 0 || rank(last) < rank(here)) last = std::move(here);
    }
  }
  return last;
}

/// The axes along which a gradient is a partial sum of its parameter's.
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

/// Of devices; different from all keys of axes and grids.
std::vector<int> key_of(const std::vector<int>& ranks) {
  std::vector<int> key = {-1};
  key.insert(key.end(), ranks.begin(), ranks.end());
  return key;
}

/// Axes of a grid, of sums and of shards.
std::vector<int> key_of(const Grid& grid, const std::vector<int>& axes,
                        const std::vector<int>& shards) {
  std::vector<int> key = {-2, grid.first_device};
  for (const placement::Axis& axis : grid.axes) {
    key.push_back(axis.size);
    key.push_back(axis.stride);
  }
  for (const auto* list : {&axes, &shards}) {
    key.push_back(-1);
    key.insert(key.end(), list->begin(), list->end());
  }
  return key;
}

/// Grids by their first devices, which tell those of one parameter apart.
std::vector<int> key_of(const std::vector<Grid>& grids) {
  std::vector<int> key;
  key.reserve(grids.size());
  for (const Grid& grid : grids) key.push_back(grid.first_device);
  return key;
}

/// Buckets by key, in the order in which they were begun: nothing depends on how devices are
/// numbered.
class OpenBuckets {
 public:
  using Key = std::vector<int>;

  Bucket& operator[](const Key& key) {
    const auto found = std::ranges::find(buckets_, key, &Entry::first);
    return found != buckets_.end() ? found->second : buckets_.emplace_back(key, Bucket{}).second;
  }
  Bucket take(const Key& key) {
    const auto found = std::ranges::find(buckets_, key, &Entry::first);
    Bucket bucket = std::move(found->second);
    buckets_.erase(found);
    return bucket;
  }
  void close_into(std::vector<Bucket>& list) {
    for (auto& [key, bucket] : buckets_) list.push_back(std::move(bucket));
    buckets_.clear();
  }

 private:
  using Entry = std::pair<Key, Bucket>;
  std::vector<Entry> buckets_;
};

/// Puts gradients into buckets as cells complete them.
class BucketFiller {
 public:
  BucketFiller(const Plan& plan, const Stages& stages, const Blocks& blocks,
               const Parameters& parameters, bool whole_sums, int device_class,
               const std::vector<ScheduledCell>& cells)
      : plan_(plan),
        stages_(stages),
        blocks_(blocks),
        parameters_(parameters),
        whole_sums_(whole_sums),
        device_class_(device_class),
        cells_(cells) {}

  /// Of what one cell completes: what it must reduce to shards.
  void scatter(int replica, int cell) {
    for (const auto& [gradient, local] : completed_by({{replica, cell}})) {
      const std::vector<int> axes = axes_of(gradient, *local);
      if (plan_.steps.on_host) {
        add_along(axes, gradient, *local, true);
      } else if (!local->gradient.axes.empty()) {
        add_along(common(axes, local->gradient.axes), gradient, *local, true);
      }
    }
    open_.close_into(result_.along_axes);
  }

  /// Of what all cells (the last of each replica) have summed up: all, or what is left where every
  /// cell has reduced to shards.
  void fill(const std::map<int, int>& last_cells, bool scattered) {
    for (const auto& [gradient, local] : completed_by(last_cells)) {
      if (!local->holding->masks.empty()) {
        add_part(gradient, *local);
        continue;
      }
      const std::vector<int> axes = without(axes_of(gradient, *local), local->gradient.axes);
      if (local->holding->grids.size() > 1) {
        Bucket& bucket = across_[key_of(local->holding->grids)];
        bucket.grids = local->holding->grids;
        bucket.shards = summed(*local).axes;
        const bool steps = !common(axes, bucket.shards).empty();
        bucket.held = steps ? bucket.shards : local->gradient.axes;
        put(bucket, gradient, *local).layout = local->holding->layout;
      }
      if (!axes.empty()) add_along(axes, gradient, *local, false, scattered);
    }
    open_.close_into(result_.along_axes);
  }

  /// Stages complete the gradients that they share in orders of their own; where they sum them up,
  /// the order is that of the graph for all.
  GradientBuckets finish() {
    across_.close_into(result_.across_grids);
    for (Bucket& bucket : result_.across_grids)
      std::ranges::sort(bucket.gradients, {}, &BucketGradient::tensor);
    std::ranges::stable_sort(result_.across_grids, {},
                             [](const Bucket& bucket) { return bucket.gradients.front().tensor; });
    return std::move(result_);
  }

 private:
  using Gradients = std::vector<std::pair<Completed, const LocalHolding*>>;

  [[nodiscard]] Gradients completed_by(const std::map<int, int>& last_cells) const {
    Gradients gradients;
    for (const auto& [parameter, local] : parameters_.on(device_class_)) {
      if (plan_.graph().gradient_of[parameter] < 0) continue;
      Completed one =
          completed(plan_, stages_, blocks_, device_class_, parameter, local, cells_, last_cells);
      if (one.cell >= 0) gradients.emplace_back(std::move(one), &local);
    }
    std::ranges::stable_sort(gradients, {}, [](const auto& pair) {
      const Completed& c = pair.first;
      return std::tuple(c.lag, c.cell, -c.segment, c.task);
    });
    return gradients;
  }

  /// How the last sums leave a gradient divided.
  [[nodiscard]] const Division& summed(const LocalHolding& local) const {
    return whole_sums_ ? local.gradient : local.step;
  }

  BucketGradient& put(Bucket& bucket, const Completed& gradient, const LocalHolding& local) const {
    bucket.cell = gradient.cell;
    bucket.segment = gradient.segment;
    const Bytes held = bucket.of_cells ? local.gradient.bytes : local.bytes;
    const Bytes left = bucket.to_shards ? local.gradient.bytes : summed(local).bytes;
    bucket.gradients.push_back({.tensor = gradient.gradient,
                                .layout = gradient.layout,
                                .mask = {},
                                .held = local.gradient_scale * held,
                                .shard = local.gradient_scale * left});
    bucket.bytes += bucket.gradients.back().held;
    bucket.shard += bucket.gradients.back().shard;
    bucket.whole += local.gradient_scale * local.bytes;
    return bucket.gradients.back();
  }

  [[nodiscard]] std::vector<int> axes_of(const Completed& gradient,
                                         const LocalHolding& local) const {
    return reduced_axes(gradient, local.holding->layout,
                        plan_.graph().tensors[gradient.gradient].name);
  }

  void add_along(const std::vector<int>& axes, const Completed& gradient, const LocalHolding& local,
                 bool to_shards, bool of_cells = false) {
    const placement::Cell& cell = cells_[gradient.cell].cell;
    const int replica = stages_.replica(cell.stage, plan_.copy_of(cell.stage, cell.micro_batch));
    const Grid& grid = stages_.replicas()[replica].grid;
    const std::vector<int>& shards = to_shards ? local.gradient.axes : summed(local).axes;
    const std::vector<int> key = key_of(grid, axes, shards);
    Bucket& bucket = open_[key];
    bucket.grid = grid;
    bucket.axes = axes;
    bucket.to_shards = to_shards;
    bucket.shards = shards;
    bucket.of_cells = of_cells;
    if (of_cells) bucket.held = local.gradient.axes;
    BucketGradient& last = put(bucket, gradient, local);
    if (of_cells) complete(last.layout, axes);
    close(key);
  }

  /// Cells have summed up a gradient along all axes but these.
  static void complete(Layout& layout, const std::vector<int>& but) {
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      const bool left = std::ranges::count(but, static_cast<int>(axis)) > 0;
      if (layout[axis].dim == AxisRole::partial && !left) layout[axis] = {AxisRole::replica};
    }
  }

  void add_part(const Completed& gradient, const LocalHolding& local) {
    const int device = stages_.device_classes()[device_class_].devices.front();
    const std::vector<int> ranks =
        gradient_group(plan_, stages_, blocks_, *local.holding, gradient.gradient, device);
    if (ranks.size() < 2) return;
    const std::vector<int> key = key_of(ranks);
    const bool along = local.holding->replicas.size() == 1;
    Bucket& bucket = along ? open_[key] : across_[key];
    bucket.ranks = ranks;
    put(bucket, gradient, local).mask = local.holding->masks.at(device);
    if (along) close(key);
  }

  /// A bucket that is full goes.
  void close(const std::vector<int>& key) {
    const Bucket& bucket = open_[key];
    if (!plan_.gradients.bucket || bucket.whole < *plan_.gradients.bucket) return;
    result_.along_axes.push_back(open_.take(key));
  }

  const Plan& plan_;
  const Stages& stages_;
  const Blocks& blocks_;
  const Parameters& parameters_;
  bool whole_sums_;
  int device_class_;
  const std::vector<ScheduledCell>& cells_;
  GradientBuckets result_;
  OpenBuckets open_;
  OpenBuckets across_;
};

}  // namespace

std::vector<int> Bucket::scattered() const { return common(axes, shards); }
std::vector<int> Bucket::others() const { return without(axes, shards); }

Bucket Bucket::only(std::size_t gradient) const {
  Bucket one = *this;
  one.gradients = {gradients[gradient]};
  one.bytes = gradients[gradient].held;
  one.shard = gradients[gradient].shard;
  return one;
}

GradientBuckets gradient_buckets(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                 const Parameters& parameters, const cost::Stack& stack,
                                 int device_class, const std::vector<ScheduledCell>& cells) {
  const bool each = reduces_each_cell(plan);
  BucketFiller filler(plan, stages, blocks, parameters,
                      says(stack, cost::StepSums::whole_gradients), device_class, cells);
  for (std::size_t i = 0; each && i < cells.size(); ++i) {
    const placement::Cell& cell = cells[i].cell;
    const int replica = stages.replica(cell.stage, plan.copy_of(cell.stage, cell.micro_batch));
    if (weighs(plan, cell)) filler.scatter(replica, static_cast<int>(i));
  }
  std::map<int, int> last_cells;
  for (const int replica : stages.device_classes()[device_class].replicas) {
    const Replica& s = stages.replicas()[replica];
    last_cells[replica] = last_weight_cell(plan, s.stage, s.copy, cells);
  }
  if (!plan.steps.on_host) filler.fill(last_cells, each);
  return filler.finish();
}

}  // namespace stratagem::lowering
