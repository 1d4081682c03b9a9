// Finds the iteration of each call of a round: a delayed step, which opens it, is of the one
// before.
#include "execute/rounds.hpp"

#include <algorithm>

namespace stratagem::execute {
namespace {

using program::Action;
using program::Call;
using program::Operation;
using program::Program;

template <typename Is>
bool any_operation(const Program& program, const Call& call, const Is& is) {
  return std::ranges::any_of(program.blocks[call.block].tasks, [&](const program::Task& task) {
    return std::ranges::any_of(task.operations, is);
  });
}

bool is_step(const Operation& operation) { return operation.action == Action::step; }

/// Does a call do something, and that to weights alone?
bool updates_weights(const Program& program, const model::Graph& graph, const Call& call) {
  const auto writes = [&](bool weights) {
    return any_operation(program, call, [&](const Operation& operation) {
      return std::ranges::any_of(operation.outputs, [&](const program::Operand& operand) {
        const model::TensorId tensor = tensor_of(program, call, operand.tensor);
        const bool weight = graph.tensors[tensor].role == model::Role::parameter;
        return (weight && operand.slot < 0) == weights;
      });
    });
  };
  return writes(true) && !writes(false);
}

}  // namespace

bool delays_steps(const Program& program, const program::Sequence& sequence) {
  for (const Call& call : sequence.calls) {
    if (any_operation(program, call, is_step)) return true;
    const auto computes = [](const Operation& one) { return one.action == Action::apply; };
    if (any_operation(program, call, computes)) return false;
  }
  return false;
}

std::vector<int> lags_of(const Program& program, const model::Graph& graph,
                         const program::Sequence& sequence) {
  const bool delayed = delays_steps(program, sequence);
  std::vector<int> lags;
  for (const Call& call : sequence.calls)
    lags.push_back(call.lag + (delayed && updates_weights(program, graph, call) ? 1 : 0));
  return lags;
}

}  // namespace stratagem::execute
