// Walks one device's calls as the interpreter does, with sizes in place of values.
#include "execute/memory_need.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "execute/value.hpp"

namespace stratagem::execute {
namespace {

using model::TensorId;
using strategies::Category;

class Walk {
 public:
  Walk(const strategies::Program& program, const model::Graph& graph, int device,
       std::size_t element)
      : program_(program),
        graph_(graph),
        device_(device),
        element_(static_cast<double>(element)),
        sequence_(program.sequences[program.devices[device].sequence]) {}

  MemoryNeed need() {
    for (const strategies::Resident& resident : sequence_.residents) {
      const bool held =
          resident.category == Category::parameters || resident.category == Category::gradients;
      if (held && resident.tensor >= 0) stays_ += held_as(resident.tensor, resident.bytes);
    }
    for (const strategies::Call& call : sequence_.calls) run(call);
    return {.iteration = Bytes{stays_ + 2 * stepped_ + most_}, .gradients = Bytes{stepped_}};
  }

 private:
  /// What the interpreter takes for so many bytes of the model's type. Masks keep the room of the
  /// numbers that they take the place of.
  [[nodiscard]] double held_as(TensorId tensor, Bytes bytes) const {
    const model::Tensor& named = graph_.tensors[tensor];
    const double one = named.role == model::Role::mask ? element_ + 1 : element_;
    return one * (bytes / model::size_of(named.type));
  }

  double bytes(const strategies::Call& call, const strategies::Slot& slot) {
    return slot.tensor < 0 ? 0 : held_as(tensor(call, slot.tensor), slot.bytes);
  }

  [[nodiscard]] TensorId tensor(const strategies::Call& call, int named) const {
    return call.segment < 0 ? named : program_.segment_tensors[call.segment][named];
  }

  void run(const strategies::Call& call) {
    const strategies::Block& block = program_.blocks[call.block];
    std::set<int> sent;
    for (const strategies::Task& task : block.tasks) {
      for (const int slot : task.births) live_ += bytes(call, block.slots[slot]);
      most_ = std::max(most_, live_);
      for (const strategies::Operation& operation : task.operations) note(call, operation, sent);
      for (const int slot : task.deaths) {
        if (!sent.contains(slot)) live_ -= bytes(call, block.slots[slot]);
      }
    }
  }

  void note(const strategies::Call& call, const strategies::Operation& operation,
            std::set<int>& sent) {
    if (operation.deed == strategies::Deed::transfer) {
      for (const strategies::Operand& operand : operation.inputs) sent.insert(operand.slot);
    }
    if (operation.deed != strategies::Deed::step) return;
    const strategies::Operand& stepped = operation.outputs[0];
    const strategies::Grid& grid = program_.grids[call.grid];
    const Region region = region_of(stepped, graph_.tensors[tensor(call, stepped.tensor)].shape,
                                    grid, grid.coordinates(grid.position(device_)));
    stepped_ += element_ * static_cast<double>(region.size());
  }

  const strategies::Program& program_;
  const model::Graph& graph_;
  int device_;
  double element_;
  const strategies::Sequence& sequence_;
  double stays_ = 0, stepped_ = 0, live_ = 0, most_ = 0;
};

}  // namespace

MemoryNeed memory_need(const strategies::Program& program, const model::Graph& graph, int device,
                       std::size_t element) {
  return Walk(program, graph, device, element).need();
}

}  // namespace stratagem::execute
