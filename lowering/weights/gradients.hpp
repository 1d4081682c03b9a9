// Which weight gradients are partial sums, over which devices, and in which buckets they are
// reduced.
#pragma once

#include <optional>
#include <vector>

#include "cost/stack.hpp"
#include "lowering/cells/cells.hpp"
#include "lowering/weights/parameters.hpp"

namespace stratagem::lowering {

/// A gradient of a bucket.
struct BucketGradient {
  model::TensorId tensor = -1;
  placement::Layout layout;             ///< before any sum
  std::optional<placement::Mask> mask;  ///< instead, where ranks are summed over: each one's part
  Bytes held;                           ///< as it is held
  Bytes shard;                          ///< of its shard; the same without shards
};

/// Gradients that are reduced together, possible once a cell of a device class has run the backward
/// block of segment `segment`.
struct Bucket {
  int cell = 0;  ///< in the device class's order
  int segment = 0;
  std::vector<BucketGradient> gradients;
  placement::Grid grid;     ///< on which its gradients lie, if axes say along what they are summed
  std::vector<int> axes;    ///< of the grid along which devices hold partial sums; empty: none
  std::vector<int> held;    ///< axes over which the gradients are divided already
  std::vector<int> shards;  ///< axes over which what becomes of the sums is divided
  std::vector<placement::Grid> grids;  ///< that hold partial sums of each other's; of one: none
  std::vector<int> ranks;  ///< on irregular stages, instead of both: the devices that do
  Bytes bytes;             ///< of all gradients as they are held
  Bytes shard;             ///< of their shards
  Bytes whole;             ///< what all of them were before cells left parts
  bool to_shards = false;  ///< of one cell: what is not of the own shards is freed
  bool of_cells = false;   ///< is it what cells have left, which have reduced their gradients?
  bool reduced = false;

  /// Axes, ascending, along which sums and shards are divided alike: reduce-scatters; then those of
  /// the sums alone.
  [[nodiscard]] std::vector<int> scattered() const;
  [[nodiscard]] std::vector<int> others() const;
  /// With one of its gradients alone.
  [[nodiscard]] Bucket only(std::size_t gradient) const;
};

/// The reductions of a device class, in the order in which its cells complete them.
struct GradientBuckets {
  /// Reductions over the axes of the grid along which the gradient is partial and its parameter is
  /// not divided. If the plan divides gradients, every cell that computes some reduces them to
  /// shards, and the accumulated shards are reduced over the other axes at the end, to the shards
  /// that ranks step, or to all that they keep (cost::StepSums). Otherwise all are reduced at once.
  /// If gradients leave for the host, every cell first reduces all of them.
  std::vector<Bucket> along_axes;
  /// Reductions over grids that hold the same parameter: tied embeddings on two stages, copies of a
  /// stage. The same for devices of several replicas.
  std::vector<Bucket> across_grids;
};
GradientBuckets gradient_buckets(const strategies::Plan& plan, const Stages& stages,
                                 const Blocks& blocks, const Parameters& parameters,
                                 const cost::Stack& stack, int device_class,
                                 const std::vector<ScheduledCell>& cells);

}  // namespace stratagem::lowering
