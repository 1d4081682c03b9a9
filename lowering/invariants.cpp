// Goes through all devices, cells and tasks of blocks.
#include "lowering/invariants.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using strategies::Plan;

namespace {

#ifdef NDEBUG
constexpr bool looks = false;
#else
constexpr bool looks = true;
#endif

/// When a cell of one iteration runs, for cells of one device class: its round, then its place.
using Moment = std::pair<int, std::size_t>;

std::map<Cell, Moment> moments_of(const std::vector<ScheduledCell>& cells) {
  std::map<Cell, Moment> moments;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool first = moments.emplace(cells[i].cell, Moment{cells[i].lag, i}).second;
    expects(first, "a device class runs each cell once a round");
  }
  return moments;
}

/// The cell of the same stage and micro-batch that must end before one begins; none before a
/// forward cell.
std::optional<Cell> cell_before(Cell cell, int repeats) {
  if (cell.pass == CellPass::forward) return std::nullopt;
  cell.pass = cell.pass == CellPass::weight ? CellPass::backward : CellPass::forward;
  if (cell.pass == CellPass::forward) cell.repeat = repeats - 1;
  return cell;
}

int micro_batches_of(const Plan& plan, const Replica& replica) {
  int count = 0;
  for (int m = 0; m < plan.micro_batches; ++m)
    count += plan.copy_of(replica.stage, m) == replica.copy;
  return count;
}

void expect_tasks(const program::Block& block) {
  const std::size_t never = block.tasks.size();
  std::vector<std::size_t> allocated(block.slots.size(), never);
  std::vector<std::size_t> freed(block.slots.size(), never);
  const auto note = [&](std::vector<std::size_t>& when, const std::vector<int>& slots,
                        std::size_t task) {
    for (const int slot : slots) {
      expects(slot >= 0 && slot < static_cast<int>(when.size()), "tasks name slots that there are");
      expects(std::exchange(when[slot], task) == never,
              "a block allocates and frees a slot once at most");
    }
  };
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    const program::Task& task = block.tasks[t];
    for (const int wait : task.waits)
      expects(wait >= 0 && wait < static_cast<int>(t), "tasks wait for earlier tasks");
    note(allocated, task.allocates, t);
    note(freed, task.frees, t);
  }
  for (std::size_t slot = 0; slot < block.slots.size(); ++slot) {
    const bool both = allocated[slot] != never && freed[slot] != never;
    expects(!both || allocated[slot] <= freed[slot], "a slot is freed after it was allocated");
  }
}

}  // namespace

void check_after(const char* pass, const std::function<void()>& check) {
  if (!looks) return;
  try {
    check();
  } catch (const BrokenPromise& broken) {
    throw BrokenPromise(std::string("after the pass ") + pass + ": " + broken.what());
  }
}

void expect_stages(const Stages& stages) {
  std::vector<int> classes(stages.class_of_device().size(), 0);
  std::vector<std::size_t> devices_of_site(stages.replicas().size(), 0);
  for (std::size_t device_class = 0; device_class < stages.device_classes().size();
       ++device_class) {
    for (const int device : stages.device_classes()[device_class].devices) {
      ++classes.at(device);
      expects(stages.class_of_device()[device] == static_cast<int>(device_class),
              "a device knows its device class");
    }
    for (const int replica : stages.device_classes()[device_class].replicas)
      devices_of_site.at(replica) += stages.device_classes()[device_class].devices.size();
  }
  expects(std::ranges::all_of(classes, [](int count) { return count == 1; }),
          "every device is in one device class");
  for (std::size_t replica = 0; replica < devices_of_site.size(); ++replica) {
    expects(devices_of_site[replica] ==
                static_cast<std::size_t>(stages.replicas()[replica].grid.count()),
            "every replica has all of its devices");
  }
}

void expect_cells(const Plan& plan, const Stages& stages, const CellOrder& order) {
  const int repeats = plan.graph().forward_repeats;
  for (std::size_t device_class = 0; device_class < order.rounds.size(); ++device_class) {
    const std::map<Cell, Moment> moments = moments_of(order.rounds[device_class]);
    for (const auto& [cell, moment] : moments) {
      const std::optional<Cell> earlier = cell_before(cell, repeats);
      if (!earlier) continue;
      const auto found = moments.find(*earlier);
      expects(found != moments.end() && found->second < moment, "F comes before B before W");
    }
    int forward = 0;
    for (const int replica : stages.device_classes()[device_class].replicas)
      forward += micro_batches_of(plan, stages.replicas()[replica]) * plan.slices() * repeats;
    const auto is_forward = [](const auto& one) { return one.first.pass == CellPass::forward; };
    expects(std::ranges::count_if(moments, is_forward) == forward,
            "a device class runs every cell of its replicas");
  }
}

void expect_blocks(const program::Program& program) {
  for (const program::Block& block : program.blocks) expect_tasks(block);
}

}  // namespace stratagem::lowering
