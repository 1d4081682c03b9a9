// The blocks of all segments, shared by equal segments, and the layouts at the borders between
// segments.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lowering/blocks/block.hpp"
#include "lowering/stages/stages.hpp"

namespace stratagem::lowering {

/// A block of the program, by its number, with what its neighbours need to know. On an irregular
/// stage there is a block for each device, and only the description of the borders is shared.
struct NumberedBlock {
  int id = -1;
  LoweredBlock lowered;
  std::vector<std::vector<NumberedBlock>> parts = {};  ///< by copy, then position in its replica

  /// What the device at a position in a replica runs.
  [[nodiscard]] const NumberedBlock& on(int copy, int position) const {
    return parts.empty() ? *this : parts[copy][position];
  }
};

/// Cache of lowered blocks. The key holds everything that affects a block, so two segments with
/// equal keys share one.
class BlockTable {
 public:
  explicit BlockTable(program::Program& program) : program_(program) {}

  /// The block under `key`, made by `lower` the first time that it is asked for.
  const NumberedBlock& shared(const std::string& key, const std::function<LoweredBlock()>& lower);
  /// The same for the blocks of a pass. If its stage lists its devices, every copy has its own.
  const NumberedBlock& shared_parts(const std::string& key, int copies,
                                    const std::function<LoweredPass(int copy)>& lower);
  /// A block of its own.
  int add(program::Block block);
  [[nodiscard]] const program::Block& operator[](int id) const { return program_.blocks[id]; }

 private:
  program::Program& program_;
  std::map<std::string, std::unique_ptr<NumberedBlock>> known_;
};

/// The blocks of one segment. A pass that nothing runs has none.
struct SegmentBlocks {
  const NumberedBlock* forward = nullptr;    ///< the last repeat, which trains
  const NumberedBlock* inference = nullptr;  ///< the repeats before it
  const NumberedBlock* again = nullptr;      ///< before the backward pass, see ForwardRun::again
  const NumberedBlock* backward = nullptr;   ///< B and W as one
  const NumberedBlock* input = nullptr;      ///< B alone
  const NumberedBlock* weight = nullptr;     ///< W alone
};

/// How tensors lie where segments and stages meet, as far as segments are lowered.
struct BordersOfTensors {
  std::map<model::TensorId, Border> left;     ///< as the last segment left it
  std::map<model::TensorId, Border> arrived;  ///< as the last one to read it got it
  std::map<model::TensorId, Border> again;    ///< as a second run hands it on to the next segment's
  /// By tensor and two stages: both as they were when it crossed.
  std::map<std::array<int, 3>, std::pair<Border, Border>> crossed;
  /// By stage and gradient of a parameter: how later segments leave it where it is not there
  /// always.
  std::map<std::pair<int, model::TensorId>, Border> begun;
};

class Blocks {
 public:
  /// Lowers every segment's forward pass from the first to the last, then what runs again in blocks
  /// of its own, then every backward pass from the last to the first, into the table. One
  /// slice of the tokens has blocks of its own.
  Blocks(const strategies::Plan& plan, const TokenSlice& slice, const cost::Stack& stack,
         const cost::Precision& precision, const Stages& stages, Groups& groups, BlockTable& table);

  [[nodiscard]] const SegmentBlocks& of(int segment) const { return segments_[segment]; }
  /// The segments that run again together with this one, if any do.
  [[nodiscard]] const std::optional<SegmentsTogether>& together(int segment) const {
    return recomputations_[segment].together();
  }
  /// The blocks of the segment that compute all its weight gradients, for what they say of them: B
  /// and W as one, or the two, since what reads a gradient that leaves runs in B.
  [[nodiscard]] std::vector<const NumberedBlock*> with_weights(int segment) const;
  /// What the forward pass of a segment leaves for its backward pass, by place in the segment's
  /// table.
  [[nodiscard]] std::map<int, Border> left_by_forward(int segment) const;
  /// The layout of an activation or gradient when it leaves a stage for another, and when the
  /// segment that reads it there begins. They are equal unless the tensor is redistributed on the
  /// way; then the second is the one that its first reader needs. A gradient that a stage passes on
  /// unchanged crosses more than one border.
  [[nodiscard]] const Border& leaving(model::TensorId tensor, int from, int to) const;
  [[nodiscard]] const Border& arriving(model::TensorId tensor, int from, int to) const;

  /// The graph as these blocks see it.
  [[nodiscard]] const model::Graph& graph() const { return graph_; }

 private:
  using Borders = std::map<int, Border>;  ///< by place in a segment's table

  [[nodiscard]] BlockContext context(int segment, int copy = 0) const;
  [[nodiscard]] Borders borders_of(const SegmentFacts& facts,
                                   const std::vector<model::TensorId>& tensors) const;
  [[nodiscard]] program::Category category_for_reader(model::TensorId activation) const;
  void arrive(int segment, const std::vector<model::OpId>& ops, model::TensorId tensor, int from);
  [[nodiscard]] std::string key_of(int segment, const std::string& what) const;
  [[nodiscard]] bool sends_again(const Recycled& one, int segment) const;
  const NumberedBlock* shared(int segment, const std::string& key,
                              const std::function<LoweredPass(int copy)>& lower);
  const NumberedBlock* forward_block(int segment, const Borders& in,
                                     const std::map<int, program::Category>& leaves, ForwardRun run,
                                     const std::string& key);
  void lower_forward_of(int segment);
  void lower_again_of(int segment);
  [[nodiscard]] Borders arriving_again(int segment) const;
  [[nodiscard]] Borders left_for_backward(int segment) const;
  void lower_backward_of(int segment, bool whole, bool split);
  const NumberedBlock* backward_block(int segment, const Borders& kept, BackwardPart part);
  [[nodiscard]] Borders with_begun(int segment, Borders kept) const;
  void note_begun(int segment, const NumberedBlock* block);

  const strategies::Plan& plan_;
  TokenSlice slice_;
  /// For a slice; copying a graph takes longer than lowering it.
  std::optional<model::Graph> sized_;
  const model::Graph& graph_;
  const cost::Stack& stack_;
  const cost::Precision& precision_;
  const Stages& stages_;
  Groups& groups_;
  BlockTable& table_;
  std::map<std::string, int> known_structures_;
  std::vector<int> structures_;                ///< by segment: equal for equal ones
  std::vector<Recomputation> recomputations_;  ///< by segment
  BordersOfTensors borders_;
  std::vector<SegmentBlocks> segments_;
};

}  // namespace stratagem::lowering
