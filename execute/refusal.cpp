// What the interpreter cannot run, found before anything starts.
#include <algorithm>
#include <string>

#include "execute/interpreter.hpp"
#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

using strategies::Task;

/// Copies of a random generator's state, which the ranks here do not have, do nothing to values.
bool needs_meaning(const Task& task) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  return kernel == nullptr || kernel->kind != cost::KernelKind::host_copy;
}

std::string refusal_of_call(const strategies::Program& program, const model::Graph& graph,
                            const strategies::Call& call) {
  const strategies::Block& block = program.blocks[call.block];
  if (call.grid < 0) return block.name + ": a stage whose operators do not share one grid";
  if (call.lag > 0 || call.versions_behind > 0) return block.name + ": a schedule without a flush";
  if (call.cell.slice > 0 || call.cell.repeat > 0)
    return block.name + ": slices of tokens, and forward passes that repeat";
  for (const Task& task : block.tasks) {
    if (task.operations.empty() && needs_meaning(task)) return "task " + task.name;
    for (const strategies::Operation& operation : task.operations) {
      if (operation.deed != strategies::Deed::apply) continue;
      const model::Segment& segment = graph.segments[call.segment];
      const auto forward = static_cast<int>(segment.forward.size());
      const model::OpId id = operation.op < forward ? segment.forward[operation.op]
                                                    : segment.backward[operation.op - forward];
      if (std::string why = execute::refusal(graph.operators[id]); !why.empty()) return why;
    }
  }
  return "";
}

}  // namespace

std::string refusal(const strategies::Program& program, const model::Graph& graph) {
  for (const strategies::Sequence& sequence : program.sequences) {
    for (const strategies::Call& call : sequence.calls) {
      if (std::string why = refusal_of_call(program, graph, call); !why.empty()) return why;
    }
  }
  return "";
}

}  // namespace stratagem::execute
