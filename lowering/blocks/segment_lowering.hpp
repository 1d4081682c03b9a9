// Lowers operators of a segment on the devices of its stage.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lowering/blocks/connections.hpp"
#include "lowering/blocks/operator_tasks.hpp"
#include "lowering/blocks/outliving.hpp"

namespace stratagem::lowering {

/// Goes through the operators of a pass in order. Brings every operator what it reads, and adds its
/// tasks to the block of every device that runs a part of it. All devices of a grid of axes run one
/// block; of a list of devices each has its own, and tasks are added in one global order, so that
/// all communicate in the same order.
class SegmentLowering {
 public:
  /// `pass` begins the names of the blocks.
  SegmentLowering(const BlockContext& context, const std::string& pass);

  /// A tensor that is there when the blocks begin.
  void import(model::TensorId tensor, const Border& border);
  /// Runs operators in order, fusing those that the stack fuses.
  void run(const std::vector<model::OpId>& ops, bool recomputed);
  /// The copies of the random generator's state at a moment, such as "after recomputation", on all
  /// devices that run any operator of the segment.
  void copy_random_state(const std::string& when);

  /// What outlives the blocks, told when all operators have run.
  [[nodiscard]] Outliving& outliving() { return outliving_; }
  /// Gathers all parameters that the forward operators read, see BlockWeights::gather.
  void gather_all();

  LoweredPass finish();

 private:
  /// An operator with its operands, as all devices run it.
  struct Running {
    model::OpId id = -1;
    Operands operands;
  };

  void run_group(const std::vector<Running>& group, bool recomputed);
  void obtain_operands(const Running& running, bool inner, bool recomputed);
  [[nodiscard]] static OperatorPart part_of(const Running& running, std::size_t part);
  void note_results(const Running& running);
  [[nodiscard]] std::vector<Running> next_group(std::span<const model::OpId> ops) const;
  void expect_ring(model::OpId id) const;
  void copy_random_state(const std::string& when, const std::vector<int>& devices);

  const BlockContext& c_;
  const model::Graph& graph_;
  std::vector<int> devices_;  ///< that have a block, in the order of the grid
  BlockDrafts blocks_;
  std::map<int, OperatorTasks> tasks_;  ///< by device
  Connections connections_;
  Outliving outliving_;
};

}  // namespace stratagem::lowering
