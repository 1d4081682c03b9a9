// A parallel plan: how a graph is split, on which devices, in which order cells run, and where
// tensors are kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "model/graph.hpp"
#include "placement/cell.hpp"
#include "placement/grid.hpp"
#include "strategies/plan/copies.hpp"
#include "strategies/plan/keep.hpp"
#include "strategies/plan/order_rule.hpp"

namespace stratagem::strategies {

/// The algorithm of an op-trans: divide the dimension that the operator's annotation calls `dim`
/// into equal parts, or into parts that differ by one; an empty `dim` replicates the operator.
struct Split {
  std::string dim;
  int parts = 1;
  bool uneven = false;  ///< the first parts may be larger by one
  /// Of one dimension that several axes divide, the axis with the larger stride makes the outer
  /// parts. Parts that are `inner` are within those of all other axes, whatever their strides.
  bool inner = false;
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
  /// Number of buffers of `bucket` bytes that exist from the first backward cell to the last.
  /// Gradients that are reduced to shards, or leave for the host, wait in them. 0: each gradient
  /// waits in a buffer of its own.
  int buffers = 0;
};

/// The optimizer's steps, each with the states that it keeps.
struct Steps {
  /// op-trans into equal runs of a weight's elements (the last one padded), one for each of the
  /// ranks along these axes that would all hold the weight whole. Each rank steps its run and tells
  /// the others. Source: Rajbhandari et al., ZeRO, SC 2020, arXiv:1910.02054, section 5.
  std::vector<std::string> divided;
  /// op-assign to the processors of each device's server, in whose memory the states live then.
  /// Gradients of every micro-batch go there as soon as they are reduced, and weights come back.
  /// Source: Ren et al., ZeRO-Offload, USENIX ATC 2021, arXiv:2101.06840, section 4.
  bool on_host = false;
  /// op-order of steps on the host after the beginning of the next iteration's first forward cell,
  /// rather than before it. So an iteration computes with weights that do not include the gradients
  /// of the one before. Those gradients reach their steps while it runs, and the new weights reach
  /// the device after it. Source: ZeRO-Offload, section 5.2.
  bool delayed = false;
  std::string said = {};  ///< where the user said any of this, as errors name it
};

/// Runs of operators in parts that run one after another on the same devices, see model::divide:
/// those that divide `dim` together with one of the named operators of the graph before.
struct Colocation {
  std::string operators;  ///< a selector
  std::string dim;
  int parts = 1;
  friend bool operator==(const Colocation&, const Colocation&) = default;
};

/// When weights are updated, and which version of them a micro-batch reads.
struct Updates {
  /// Without a flush, the micro-batches of one iteration follow those of the one before: orders
  /// between cells hold for micro-batches counted through all iterations, and the forward cells of
  /// the next may overtake an update.
  bool flush = true;
  /// How a stage of a plan without flush chooses the version that F and B of a micro-batch read;
  /// what is read later is kept (weight stashing).
  enum class Version : std::uint8_t {
    latest,    ///< the newest when F begins: PipeDream
    vertical,  ///< on all stages the one that was newest on the first: PipeDream with vertical sync
    previous   ///< the one before the newest complete iteration: PipeDream-2BW
  };
  Version version = Version::latest;
};

/// What op-orders have said of the cells.
struct CellOrders {
  std::vector<placement::Order> pairs;
  std::vector<OrderRule> rules;
  std::vector<std::vector<placement::Cell>> chains;  ///< each cell before the next
  std::vector<std::pair<placement::Cell, placement::Cell>> together;
};

/// Where the user said what the lowering may have to refuse, as errors name it: the path of an
/// option or of a primitive; "" of what nobody said. Rules of residency and Steps have their own.
struct Said {
  std::string updates;             ///< that there is no flush
  std::string rings;               ///< that attention runs in a ring
  std::string slices;              ///< token slices
  std::string gradients;           ///< buckets of their reduction
  std::vector<std::string> again;  ///< by group of operators that run again
};

/// One plan for one graph. Splitting is affine: sub-operator (i, j, ...) of an operator stands on
/// device first + i * stride_i + j * stride_j + ..., so a plan for thousands of devices stays as
/// small as the graph; a list may place it anywhere else. Backward operators and optimizer steps
/// follow their forward operator.
class Plan {
 public:
  /// `graph` must outlive the plan, or its first rewriting.
  explicit Plan(const model::Graph& graph);

  /// op-trans that changes operators rather than dividing them: from now on the plan is of `graph`,
  /// which it owns, with as many segments as the one before; `colocations` tell what makes it of
  /// the graph that the plan was given. Expects that nothing was said yet of single operators,
  /// whose ids change.
  void rewrite(model::Graph graph, std::vector<Colocation> colocations);
  [[nodiscard]] const std::vector<Colocation>& colocations() const { return colocations_; }
  /// Has a primitive spoken of single operators?
  [[nodiscard]] bool speaks_of_operators() const;

  [[nodiscard]] const model::Graph& graph() const { return *graph_; }
  /// The forward operators, in order.
  [[nodiscard]] std::vector<model::OpId> operators() const;

  /// op-trans. Throws InputError if the dimension does not exist, may not be split, has fewer
  /// elements than parts, does not divide evenly where it has to, or has inner parts already where
  /// these are to be inner.
  Parts trans(model::OpId op, const Split& split);
  /// op-assign of all parts: part i moves i places along the axis.
  void assign(const Parts& parts, const placement::Axis& axis);
  /// op-assign of the whole operator: where its sub-operator with all coordinates 0 stands. A copy
  /// is the operator as it works on the micro-batches of that copy.
  void assign(model::OpId op, int first_device, int copy = 0);
  /// op-assign of every part: parts in row-major order of the op-trans, the last one fastest. Takes
  /// the place of first device and axes. The lowering checks the list, since op-trans may follow.
  void assign(model::OpId op, std::vector<int> devices, int copy = 0);

  /// op-order.
  void order(const placement::Cell& before, const placement::Cell& after) {
    orders_.pairs.push_back({before, after});
  }
  void order(OrderRule rule) { orders_.rules.push_back(std::move(rule)); }
  /// op-order of the parts of fused attention along its keys: each rank of an axis that divides
  /// the queries begins with its own keys and values, and goes on with those of other ranks as
  /// messages around a ring bring them (lowering/blocks/ring.hpp). Throws InputError for another
  /// operator, one with sinks or a window, an axis that is not the only one to divide its tokens,
  /// and tokens that do not divide into two chunks a rank.
  void run_in_ring(model::OpId op, const std::string& axis);
  /// op-order of each cell before the next.
  void chain(std::vector<placement::Cell> cells) { orders_.chains.push_back(std::move(cells)); }
  /// Two cells of one device that run together: both begin when both may begin, each computes
  /// beside the collectives of the other, and results of either leave when both have ended.
  void run_together(const placement::Cell& first, const placement::Cell& second) {
    orders_.together.emplace_back(first, second);
  }
  [[nodiscard]] const CellOrders& orders() const { return orders_; }
  /// Takes back what op-orders have said so far.
  void forget_orders() { orders_ = {}; }

  /// op-trans that replicates stages; each copy processes a subset of the micro-batches. Until they
  /// are assigned, a copy's operators share the devices of copy 0. Expects a number for each stage,
  /// and that stages and micro-batches do not change afterwards. Throws InputError if copies that
  /// take turns would not get equally many micro-batches of an iteration.
  void copy_stages(Copies copies);
  [[nodiscard]] const Copies& copies() const { return copies_; }
  /// The copy of a stage that works on a micro-batch.
  [[nodiscard]] int copy_of(int stage, int micro_batch) const {
    return copies_.of_micro_batch(stage, micro_batch, micro_batches);
  }
  /// How many copies a forward operator has: those of its stage.
  [[nodiscard]] int copies_of(model::OpId forward_op) const {
    return static_cast<int>(placements_[forward_op].first_devices.size());
  }

  /// op-trans of a backward cell into B, its input gradients, and W, its weight gradients.
  void split_backward(int stage, int micro_batch);
  [[nodiscard]] bool splits_backward(int stage, int micro_batch) const {
    return split_.contains({stage, micro_batch});
  }

  /// op-trans that recomputes some forward operators of a segment, as one group: they run again
  /// right before the first backward operator that reads what only the group's own gradients need.
  /// Instead of their results only the group's inputs are kept. A group may also be all operators
  /// of consecutive segments of a stage: all run again before the backward pass of the last
  /// segment. Results that others' gradients read, too, are kept, unless the group drops them: then
  /// it runs again before the first of those readers, unless a later segment reads the result.
  /// Groups of parts of a segment may lie within one of all of its operators: the second run, a
  /// block of its own, keeps no more than a first one would, and each part runs a third time.
  /// Throws InputError if an operator is in such a group already, or if operators of several
  /// segments are not all of their operators, or drop their results.
  void recompute(std::vector<model::OpId> group, bool drops_results = false);

  /// The split of every axis that an operator stands on: `axes[i]` carries `dims[i]` ("" =
  /// replicated).
  struct Placement {
    std::vector<int> first_devices = {0};  ///< by copy
    std::vector<placement::Axis> axes;
    std::vector<std::string> dims;
    std::vector<bool> uneven;              ///< by axis, see Split
    std::vector<bool> inner;               ///< by axis, see Split
    std::string ring = {};                 ///< the axis of run_in_ring
    std::vector<std::vector<int>> listed;  ///< by copy: the device of every part; empty: affine
  };
  [[nodiscard]] const Placement& placement(model::OpId forward_op) const {
    return placements_[forward_op];
  }
  /// The groups of forward operators that run again in the backward pass; each in forward order.
  [[nodiscard]] const std::vector<std::vector<model::OpId>>& recomputed() const {
    return recomputed_.groups;
  }
  /// Does a group, by its place in recomputed(), keep nothing of what it computes for its segment?
  [[nodiscard]] bool drops_results(std::size_t group) const {
    return recomputed_.drops_results[group];
  }
  /// The groups of a forward operator: of all operators of its segment, and of a part of them; -1
  /// if it is in none.
  struct Groups {
    int whole = -1;
    int part = -1;
  };
  [[nodiscard]] Groups groups_of(model::OpId forward_op) const {
    return recomputed_.groups_of[forward_op];
  }
  /// Does an operator run again?
  [[nodiscard]] bool runs_again(model::OpId forward_op) const {
    return groups_of(forward_op).whole >= 0 || groups_of(forward_op).part >= 0;
  }

  /// op-trans of every micro-batch along its tokens: how many tokens each slice has; empty: whole.
  std::vector<std::int64_t> token_slices;
  [[nodiscard]] int slices() const {
    return token_slices.empty() ? 1 : static_cast<int>(token_slices.size());
  }
  /// How many cells there are.
  [[nodiscard]] Extent extent() const {
    return {.stages = static_cast<int>(stages.size()),
            .micro_batches = micro_batches,
            .slices = slices(),
            .repeats = graph_->forward_repeats};
  }
  int micro_batches = 1;  ///< op-trans along the batch: repetitions of the graph per iteration
  /// Segments of every stage, in order; at first one stage with all.
  std::vector<std::vector<int>> stages;
  GradientReduction gradients;
  Steps steps;
  /// What waits elsewhere, or in parts, between its uses.
  Residency residency;
  /// The axes over which something is divided in a gap between its uses: states, and gradients that
  /// wait for steps on the host, over those of their steps; what is whole while an iteration lasts
  /// over none.
  [[nodiscard]] const std::vector<std::string>& divided(
      Keep::What what, Keep::Between gap = Keep::Between::micro_batches) const;
  /// Where parameters, gradients, states or checkpoints are between their uses: states, and
  /// gradients before them, where their steps are.
  [[nodiscard]] Keep::Where place_of(Keep::What what) const;
  Updates updates;
  Said said;
  /// What the plan has, and nobody is known to have said so far, was said there.
  void note_said(const std::string& path);

 private:
  void check_together(const std::vector<model::OpId>& group) const;

  std::shared_ptr<const model::Graph> graph_;  ///< owned after a rewriting
  std::vector<Colocation> colocations_;
  std::vector<Placement> placements_;
  CellOrders orders_;
  std::set<std::pair<int, int>> split_;  ///< stage, micro-batch
  struct Recomputed {
    std::vector<std::vector<model::OpId>> groups;
    std::vector<bool> drops_results;  ///< by group
    std::vector<Groups> groups_of;    ///< by forward operator
  };
  Recomputed recomputed_;
  Copies copies_;
};

/// The first and the last segment of operators, at least one.
std::pair<int, int> segment_range(const model::Graph& graph, const std::vector<model::OpId>& ops);

/// Are all parts of a forward operator equal?
bool divides_evenly(const Plan& plan, model::OpId forward_op);

/// Size of the dimension that an operator's annotation calls `dim`; for a fused dimension the
/// smallest size that any tensor gives the identifier. 0 if no tensor names it in a leading place.
std::int64_t size_of_dimension(const model::Graph&, const model::Operator&, const std::string& dim);

}  // namespace stratagem::strategies
