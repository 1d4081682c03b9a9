// The arena of the interpreter, and what it keeps elsewhere.
#include "execute/memory_need.hpp"

#include <algorithm>
#include <map>

#include "execute/value.hpp"

namespace stratagem::execute {
namespace {

/// Elements of what a device steps.
double stepped(const program::Program& program, const model::Graph& graph, int device) {
  const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
  std::map<model::TensorId, int> grids;  // by parameter
  for (const program::Resident& resident : sequence.residents) {
    if (resident.category == program::Category::parameters) grids[resident.tensor] = resident.grid;
  }
  double elements = 0;
  for (const program::Call& call : sequence.calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      for (const program::Operation& operation : task.operations) {
        if (operation.action != program::Action::step) continue;
        const program::Operand& stepped = operation.outputs[0];
        const model::TensorId tensor = tensor_of(program, call, stepped.tensor);
        const Region region = region_of(stepped, graph.tensors[tensor].shape, program.grids,
                                        grids.at(tensor), device);
        elements += static_cast<double>(region.size());
      }
    }
  }
  return elements;
}

}  // namespace

MemoryNeed memory_need(const program::Program& program, const model::Graph& graph, int device,
                       const ElementSizes& sizes) {
  const BufferPacking placed = pack_buffers(program, graph, device, sizes);
  const double elements = stepped(program, graph, device);
  const double each = static_cast<double>(sizes.state) * elements;
  const bool mixed = sizes.number < sizes.state;  // a main copy beside both moments
  const double states = (mixed ? 3 : 2) * each;
  const auto room =
      placed.states < 0 ? 0.0 : static_cast<double>(placed.buffers[placed.states].capacity);
  return {.iteration = Bytes{static_cast<double>(placed.extent) + std::max(0.0, states - room)},
          .gradients = Bytes{each}};
}

}  // namespace stratagem::execute
