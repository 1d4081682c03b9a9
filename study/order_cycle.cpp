// Reads the plan again with fewer and fewer op-orders: what is told needs no record of who said
// what.
#include "study/order_cycle.hpp"

#include "lowering/cells/cell_graph.hpp"
#include "lowering/cells/cells.hpp"
#include "strategies/language/plan_file.hpp"

namespace stratagem::study {
namespace {

/// Of the op-orders among the first `primitives` primitives.
std::optional<InputError> cycle_of(const JsonReader& file, const model::Graph& graph,
                                   int micro_batches, std::size_t primitives) {
  const strategies::Plan plan = strategies::read_plan(file, graph, micro_batches, primitives);
  const lowering::Stages stages(plan);
  const lowering::CellGraph cells(plan, stages, iterations_to_order(plan, stages));
  try {
    static_cast<void>(cells.sorted());
  } catch (const InputError& cycle) {
    return cycle;
  }
  return std::nullopt;
}

/// More op-orders leave every cycle there.
std::optional<InputError> first_cycle(const JsonReader& file, const model::Graph& graph,
                                      int micro_batches) {
  const std::vector<JsonReader> primitives = file.at("primitives").elements();
  std::size_t without = 0;
  std::size_t with = primitives.size();
  std::optional<InputError> found = cycle_of(file, graph, micro_batches, with);
  while (found && with - without > 1) {
    const std::size_t middle = without + (with - without) / 2;
    if (auto earlier = cycle_of(file, graph, micro_batches, middle)) {
      found = std::move(earlier);
      with = middle;
    } else {
      without = middle;
    }
  }
  if (!found) return std::nullopt;
  return InputError("", primitives[with - 1].path(), found->expected, found->found);
}

}  // namespace

std::optional<InputError> order_cycle(const JsonReader& file, const model::Graph& graph,
                                      int micro_batches) {
  try {
    return first_cycle(file, graph, micro_batches);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace stratagem::study
