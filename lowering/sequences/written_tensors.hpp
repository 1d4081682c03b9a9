// Which call of a device class wrote which tensor of which cell last.
#pragma once

#include <compare>
#include <map>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// A tensor as one cell makes it.
struct CellTensor {
  CellTensor(model::TensorId id, const placement::Cell& cell)
      : tensor(id), micro_batch(cell.micro_batch), slice(cell.slice), repeat(cell.repeat) {}
  model::TensorId tensor;
  int micro_batch;
  int slice;
  int repeat;
  friend auto operator<=>(const CellTensor&, const CellTensor&) = default;
};

/// Tasks of the sequence that later calls may have to wait for.
class WrittenTensors {
 public:
  void note(const CellTensor& tensor, const Written& by) { by_.insert_or_assign(tensor, by); }
  /// Null if no call here writes it.
  [[nodiscard]] const Written* find(const CellTensor& tensor) const {
    const auto found = by_.find(tensor);
    return found == by_.end() ? nullptr : &found->second;
  }

 private:
  std::map<CellTensor, Written> by_;
};

}  // namespace stratagem::lowering
