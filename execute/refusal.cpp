// What the interpreter cannot run, found before anything starts and said in the words of plans.
#include <algorithm>
#include <string>

#include "execute/interpreter.hpp"
#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

using program::Stream;
using program::Task;

/// Copies of a random generator's state, which the ranks here do not have, do nothing to values,
/// nor does what only has its place in the order of a stream. What a host reads from its drives, or
/// writes there, lies in memory of the rank all the time.
bool needs_meaning(const Task& task) {
  if (task.stream == Stream::read_drives || task.stream == Stream::write_drives) return false;
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  const bool idle = kernel != nullptr && kernel->launches == 0 && task.writes.empty();
  return kernel == nullptr || (kernel->kind != cost::KernelKind::host_copy && !idle);
}

/// Does a kernel of the program answer to `is`?
template <typename Is>
bool any_kernel(const program::Program& program, const Is& is) {
  return std::ranges::any_of(program.blocks, [&](const program::Block& block) {
    return std::ranges::any_of(block.tasks, [&](const Task& task) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      return kernel != nullptr && is(*kernel);
    });
  });
}

/// Of a call as a whole.
std::string refusal_of_call(const program::StoredCall& call, Backend backend) {
  if (backend == Backend::cuda && (call.lag > 0 || call.versions_behind > 0))
    return "weights that are older than the last step, as PipeDream's and those of delayed steps, "
           "on a GPU";
  if (call.cell.slice > 0) return "slices of tokens";
  if (call.cell.repeat > 0) return "forward passes that repeat";
  return "";
}

/// Does a gather land in a buffer of the framework, of which the program has no slot?
bool lands_apart(const program::Block& block, const Task& task) {
  return std::holds_alternative<program::Collective>(task.work) &&
         std::ranges::any_of(task.writes,
                             [&](int slot) { return block.slots[slot].bytes == Bytes{}; });
}

/// Is it a piece of a product, but for the last, which has the values of all?
bool is_piece(const Task& task) {
  const auto* kernel = std::get_if<cost::Kernel>(&task.work);
  return kernel != nullptr && kernel->kind == cost::KernelKind::gemm && task.operations.empty();
}

/// Is it a message of keys and values, beside a part of attention?
bool is_ring_message(const Task& task) {
  const auto* one = std::get_if<program::Collective>(&task.work);
  return one != nullptr && one->kind == cost::CollectiveKind::ring_messages;
}

/// Is it of a stage of which every device has parts of its own?
bool differs_by_device(const program::Operation& operation) {
  const auto own = [](const program::Operand& operand) { return !operand.masks.empty(); };
  return operation.action == program::Action::join || std::ranges::any_of(operation.inputs, own) ||
         std::ranges::any_of(operation.outputs, own);
}

/// Masks lie in bytes, which the host packs.
bool sends_masks(const program::Program& program, const model::Graph& graph,
                 const program::StoredCall& call, const program::Operation& operation) {
  return operation.action == program::Action::transfer &&
         std::ranges::any_of(operation.inputs, [&](const program::Operand& operand) {
           return graph.tensors[tensor_of(program, call, operand.tensor)].role == model::Role::mask;
         });
}

std::string refusal_of_tasks(const program::Program& program, const model::Graph& graph,
                             const program::StoredCall& call, Backend backend) {
  const program::Block& block = program.blocks[call.block];
  if (const auto ring = std::ranges::find_if(block.tasks, &is_ring_message);
      ring != block.tasks.end()) {
    return "attention in a ring (task " + ring->name +
           "); with \"context_exchange\": \"gather\" it runs";
  }
  for (const Task& task : block.tasks) {
    if (is_piece(task))
      return "products in pieces, beside their collectives (task " + task.name + ")";
    if (lands_apart(block, task))
      return "gathers into buffers that the framework keeps (task " + task.name + ")";
    if (task.operations.empty() && needs_meaning(task))
      return "a task of which the plan does not say what it computes (task " + task.name + ")";
    const auto away = [&](int slot) {
      return block.slots[slot].place != program::Residence::device;
    };
    if (backend == Backend::cuda && std::ranges::any_of(task.allocates, away))
      return "values that wait on the host, on a GPU (task " + task.name + ")";
    for (const program::Operation& operation : task.operations) {
      if (backend == Backend::cuda && differs_by_device(operation))
        return "stages whose operators do not share one grid in equal parts, on a GPU (task " +
               task.name + ")";
      if (backend == Backend::cuda && sends_masks(program, graph, call, operation))
        return "masks of dropout that are lent to other devices, on a GPU (task " + task.name + ")";
      if (operation.action != program::Action::apply) continue;
      const model::Segment& segment = graph.segments[call.segment];
      const auto forward = static_cast<int>(segment.forward.size());
      const model::OpId id = operation.op < forward ? segment.forward[operation.op]
                                                    : segment.backward[operation.op - forward];
      if (std::string why = execute::refusal(graph, graph.operators[id], backend); !why.empty())
        return why;
    }
  }
  return "";
}

/// Do gradients wait for their reduction in buffers that are no gradient's own?
bool has_gradient_buffers(const program::Program& program) {
  return std::ranges::any_of(program.sequences, [](const program::Sequence& sequence) {
    return std::ranges::any_of(sequence.residents, [](const program::Resident& resident) {
      return resident.category == program::Category::whole_gradients;
    });
  });
}

}  // namespace

std::string refusal(const program::Program& program, const model::Graph& graph, Backend backend) {
  for (const model::DataType type : model::data_types()) {
    const auto of_type = [&](const cost::Kernel& kernel) { return kernel.type == type; };
    if (model::is_scaled(type) && any_kernel(program, of_type))
      return "linear layers in " + model::to_text(type);
  }
  if (has_gradient_buffers(program)) return "gradients in buffers of a constant size";
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::StoredCall& call : sequence.calls.stored()) {
      if (std::string why = refusal_of_call(call, backend); !why.empty()) return why;
    }
  }
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::StoredCall& call : sequence.calls.stored()) {
      if (std::string why = refusal_of_tasks(program, graph, call, backend); !why.empty())
        return why;
    }
  }
  return "";
}

}  // namespace stratagem::execute
