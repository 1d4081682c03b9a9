// All cells of a plan as a graph: which cell must come before which, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/stages/stages.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// The cells of `iterations` iterations, numbered; those of a pair that runs together are one node.
/// Micro-batches count through all iterations.
class CellGraph {
 public:
  /// Throws InputError for orders that name cells that do not exist.
  CellGraph(const strategies::Plan& plan, const Stages& stages, int iterations);

  /// All nodes, each after what comes before it; throws InputError with one cycle if that is
  /// impossible.
  [[nodiscard]] std::vector<int> sorted() const;
  /// Is there a path from one node to another? `position` is each node's place in sorted order.
  [[nodiscard]] bool leads_to(int from, int to, const std::vector<int>& position) const;

  [[nodiscard]] int count() const { return static_cast<int>(after_.size()); }
  [[nodiscard]] bool exists(int node) const;
  [[nodiscard]] placement::Cell cell(int node) const;
  /// The cells of a node in the order in which they run: one, or a pair.
  [[nodiscard]] std::vector<placement::Cell> cells(int node) const;
  /// The replica in which a cell runs.
  [[nodiscard]] int replica(const placement::Cell& cell) const;
  /// "F(stage 1, micro-batch 3) on devices 4 to 7".
  [[nodiscard]] std::string describe(const placement::Cell& cell) const;

 private:
  [[nodiscard]] int node(const placement::Cell& cell) const;
  [[nodiscard]] int existing(const placement::Cell& cell, const std::string& path) const;
  void add(const placement::Cell& before, const placement::Cell& after);
  void add_data(int micro_batch);
  void add_flow(const StageFlow& flow, int micro_batch);
  void add_slices(int stage, int micro_batch);
  void add_orders();
  void merge_pairs();
  [[nodiscard]] bool splits(int stage, int micro_batch) const;
  [[nodiscard]] std::string cycle(const std::vector<int>& missing) const;

  const strategies::Plan& plan_;
  const Stages& stages_;
  int stage_count_;
  int micro_batches_;
  int slices_;
  int repeats_;
  std::vector<std::vector<int>> after_;
  std::vector<int> merged_into_;  ///< by node: the first of its pair, else itself
  std::vector<int> partner_;      ///< by first of a pair: the second; else -1
};

}  // namespace stratagem::lowering
