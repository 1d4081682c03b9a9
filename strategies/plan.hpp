// A parallelisation plan: what op-trans, op-assign and op-order have said about a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "model/graph.hpp"
#include "strategies/cell.hpp"

namespace stratagem::strategies {

/// Devices in a row: the one with coordinate i stands i * stride devices after the first.
struct Axis {
  std::string name;
  int size = 1;
  int stride = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// The algorithm of an op-trans: divide the dimension that the operator's annotation calls `dim`
/// into equal parts; an empty `dim` replicates the operator.
struct Split {
  std::string dim;
  int parts = 1;
};

/// The sub-operators that one op-trans made of every sub-operator there was before it.
struct Parts {
  model::OpId op = 0;
  int level = 0;
};

/// How gradients that are partial sums over devices are reduced: an op-trans of the reduction into
/// buckets of about `bucket` bytes in the order in which gradients appear, on a stream of their
/// own. With `overlap` each is ordered right after the backward cell that completes it, else after
/// the last one.
struct GradientReduction {
  bool overlap = false;
  std::optional<Bytes> bucket;  ///< nullopt: all gradients in one
};

/// One plan for one graph. Splitting is affine: sub-operator (i, j, ...) of an operator stands on
/// device first + i * stride_i + j * stride_j + ..., so a plan for thousands of devices stays as
/// small as the graph. Backward operators and optimizer steps follow their forward operator.
class Plan {
 public:
  /// `graph` must outlive the plan.
  explicit Plan(const model::Graph& graph);

  [[nodiscard]] const model::Graph& graph() const { return *graph_; }
  /// The forward operators, in order.
  [[nodiscard]] std::vector<model::OpId> operators() const;

  /// op-trans. Throws InputError if the dimension does not exist, may not be split, or does not
  /// divide evenly.
  Parts trans(model::OpId op, const Split& split);
  /// op-assign of all parts: part i moves i places along the axis.
  void assign(const Parts& parts, const Axis& axis);
  /// op-assign of the whole operator: where its sub-operator with all coordinates 0 stands.
  void assign(model::OpId op, int first_device);
  /// op-order.
  void order(const Cell& before, const Cell& after);
  /// op-trans that adds to a segment's backward pass the re-execution of its forward operators; in
  /// exchange only the segment's inputs are kept.
  void recompute(int segment);

  /// The split of every axis that an operator stands on: `axes[i]` carries `dims[i]` ("" =
  /// replicated).
  struct Placement {
    int first_device = 0;
    std::vector<Axis> axes;
    std::vector<std::string> dims;
  };
  [[nodiscard]] const Placement& placement(model::OpId forward_op) const {
    return placements_[forward_op];
  }
  [[nodiscard]] const std::vector<Order>& orders() const { return orders_; }
  /// True if the segment's forward operators run again before its backward operators; never where
  /// it has none.
  [[nodiscard]] bool recomputes(int segment) const {
    return recomputed_[segment] && !graph_->segments[segment].backward.empty();
  }

  int micro_batches = 1;  ///< op-trans along the batch: repetitions of the graph per iteration
  std::vector<std::vector<int>>
      stages;  ///< segments of every stage, in order; at first one stage with all
  GradientReduction gradients;

 private:
  const model::Graph* graph_;
  std::vector<Placement> placements_;
  std::vector<Order> orders_;
  std::vector<bool> recomputed_;
};

/// Size of the dimension that an operator's annotation calls `dim`; for a fused dimension the
/// smallest size that any tensor gives the identifier. 0 if no tensor names it in a leading place.
std::int64_t size_of_dimension(const model::Graph&, const model::Operator&, const std::string& dim);

}  // namespace stratagem::strategies
