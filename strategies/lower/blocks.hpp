// The blocks of all segments, equal segments sharing theirs, and the layouts at the borders between
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/lower/block.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

/// A block of the program, by its number, with what its neighbours need to know.
struct NumberedBlock {
  int id = -1;
  LoweredBlock lowered;
};

class Blocks {
 public:
  /// Lowers every segment's forward pass from the first to the last, then every backward pass from
  /// the last to the first, into `program`.
  Blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages, Groups& groups,
         Program& program);

  [[nodiscard]] const NumberedBlock& forward(int segment) const { return *forward_[segment]; }
  [[nodiscard]] const NumberedBlock& backward(int segment) const { return *backward_[segment]; }
  /// How an activation or gradient lies when it crosses from a segment to another.
  [[nodiscard]] const Border& border(model::TensorId tensor) const { return borders_.at(tensor); }

  /// The block under `key`, made by `lower` the first time that it is asked for.
  const NumberedBlock& shared(const std::string& key, const std::function<LoweredBlock()>& lower);
  /// A block of its own.
  int add(Block block);
  [[nodiscard]] const Block& operator[](int id) const { return program_.blocks[id]; }

 private:
  [[nodiscard]] BlockContext context(int segment) const;
  [[nodiscard]] std::map<int, Border> borders_of(const SegmentFacts& facts,
                                                 const std::vector<model::TensorId>& tensors) const;
  [[nodiscard]] Category category_for_reader(model::TensorId activation) const;
  [[nodiscard]] std::map<int, Border> kept_for_backward(int segment) const;
  void lower_forward_of(int segment);
  void lower_backward_of(int segment);

  const Plan& plan_;
  const cost::Stack& stack_;
  const Stages& stages_;
  Groups& groups_;
  Program& program_;
  std::map<std::string, std::unique_ptr<NumberedBlock>> known_;
  std::map<model::TensorId, Border> borders_;
  std::vector<const NumberedBlock*> forward_, backward_;  ///< by segment
};

}  // namespace stratagem::strategies
