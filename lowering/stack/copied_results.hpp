// Rules of copied results: a fused attention saves its result beside the copy that others read.
#pragma once

#include <cstdint>
#include <map>

#include "cost/stack.hpp"
#include "model/graph.hpp"

namespace stratagem::lowering {

/// The results of fused attentions that are there twice. What is saved of one lives as long as the
/// statistic that the attention leaves, since the gradient alone reads both: it counts as part of
/// the statistic's buffer.
class CopiedResults {
 public:
  CopiedResults(const model::Graph& graph, const cost::Stack& stack) {
    if (cost::rules_of<cost::CopiedResult>(stack).empty()) return;
    for (const model::Operator& op : graph.operators) {
      if (op.kind != model::OpKind::fused_attention || op.pass != model::Pass::forward) continue;
      const model::Tensor& result = graph.tensors[op.outputs[0]];
      const model::Tensor& statistic = graph.tensors[op.outputs[1]];
      beside_[op.outputs[1]] = whole(result) / whole(statistic);
    }
  }

  /// Bytes of a result that is saved beside each byte of a tensor; 0 but for such a statistic.
  [[nodiscard]] double beside(model::TensorId tensor) const {
    const auto found = beside_.find(tensor);
    return found == beside_.end() ? 0 : found->second;
  }

 private:
  static Bytes whole(const model::Tensor& tensor) {
    double elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= static_cast<double>(size);
    return elements * model::size_of(tensor.type);
  }

  std::map<model::TensorId, double> beside_;
};

}  // namespace stratagem::lowering
