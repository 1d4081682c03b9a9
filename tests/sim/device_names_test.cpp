// On a uniform network it does not matter which device is which: a plan says the same for other
// devices, and they do, hold and communicate the same.
#include "sim/metrics.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/sim/found_volume.hpp"
#include "tests/sim/priced_by_name.hpp"

namespace stratagem::sim {

namespace {

using program::Program;
using strategies::Plan;

/// Every part of a listed plan on the device of another name: device d becomes names[d].
Plan renamed(Plan plan, const std::vector<int>& names) {
  for (const model::OpId op : plan.operators()) {
    for (int copy = 0; copy < plan.copies_of(op); ++copy) {
      std::vector<int> devices = plan.placement(op).listed[copy];
      for (int& device : devices) device = names[device];
      plan.assign(op, devices, copy);
    }
  }
  return plan;
}

/// What a device sends and receives in one iteration.
double communicated(const Program& program, int device) {
  double bytes = 0;
  each_collective(program, device,
                  [&](const auto&, const auto& task, const auto& collective, double n) {
                    const bool receives = program::transfers(task.stream) && !sends(task.stream);
                    bytes += receives ? collective.payload.value : moved(collective, n);
                  });
  return bytes;
}

double communicated(const Program& program) {
  double bytes = 0;
  for (int device = 0; device < static_cast<int>(program.devices.size()); ++device)
    bytes += communicated(program, device);
  return bytes;
}

/// How two programs differ where device d of the first is names[d] of the second; "" if they do
/// not.
std::string difference(const Program& first, const Program& second, const std::vector<int>& names) {
  const Timeline before = played(first);
  const Timeline after = played(second);
  if (before.iteration_ends != after.iteration_ends) return "makespan";
  for (std::size_t d = 0; d < names.size(); ++d) {
    const auto device = static_cast<int>(d);
    const auto other = static_cast<std::size_t>(names[d]);
    if (!close(communicated(first, device), communicated(second, names[d]), 1e-12))
      return "volume of device " + std::to_string(d);
    if (memory_peak(first, before, d).total != memory_peak(second, after, other).total)
      return "peak memory of device " + std::to_string(d);
  }
  return "";
}

/// Has a gradient partial sums of which there are replicas? Which replicas sum up with each other
/// is told by the numbers of their devices.
bool sums_have_replicas(const RandomPlan& random) {
  return std::ranges::any_of(random.graph->operators, [&](const model::Operator& op) {
    if (op.pass != model::Pass::weight_gradient) return false;
    const Plan::Placement& placement = random.plan->placement(op.forward);
    bool sums = false;
    bool replicas = false;
    for (std::size_t i = 0; i < placement.axes.size(); ++i) {
      if (placement.axes[i].size == 1) continue;
      const bool sum = model::is_reduction(*op.annotation, placement.dims[i]);
      sums = sums || sum;
      replicas = replicas ||
                 (!sum && model::dimension_of(op.annotation->outputs[0], placement.dims[i]) < 0);
    }
    return sums && replicas;
  });
}

/// Stages that share devices move together.
struct Island {
  int first = 0;
  int end = 0;
  std::vector<std::size_t> stages;
};

std::vector<Island> islands(const RandomPlan& random) {
  std::vector<std::size_t> order(random.stages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](auto s) { return random.stages[s].first_device; });
  std::vector<Island> result;
  for (const std::size_t stage : order) {
    const RandomStage& here = random.stages[stage];
    if (result.empty() || here.first_device >= result.back().end)
      result.push_back({here.first_device, here.first_device, {}});
    result.back().end = std::max(result.back().end, here.end());
    result.back().stages.push_back(stage);
  }
  return result;
}

/// Is every dimension of tensors divided along one axis at most? Else strides tell which axis
/// divides it first, and other strides are another plan.
bool divides_once(const RandomPlan& random) {
  std::map<std::string, std::string> axis_of;  // by dimension; k is n as a product reads it
  bool once = true;
  each_operator(random, [&](model::OpId op, const RandomStage&) {
    const Plan::Placement& placement = random.plan->placement(op);
    for (std::size_t i = 0; i < placement.axes.size(); ++i) {
      const std::string dim = placement.dims[i] == "k" ? "n" : placement.dims[i];
      const std::string& axis = placement.axes[i].name;
      if (!dim.empty()) once = once && axis_of.emplace(dim, axis).first->second == axis;
    }
  });
  return once;
}

/// Gives axes other strides where all stages have the same: between unequal ones tensors go other
/// ways.
void swap_axes(RandomPlan& random) {
  std::vector<placement::Axis> axes = random.stages.front().axes;
  if (!std::ranges::all_of(random.stages, [&](const auto& s) { return s.axes == axes; })) return;
  if (!divides_once(random)) return;
  stride_randomly(axes);
  for (RandomStage& stage : random.stages) stage.axes = axes;
}

/// Tells a plan that all its stages stand where `random.stages` says by now.
void assign(RandomPlan& random) {
  each_operator(random, [&](model::OpId op, const RandomStage& stage) {
    random.plan->assign(op, stage.first_device);
    for (std::size_t i = 0; i < stage.axes.size(); ++i)
      random.plan->assign(strategies::Parts{op, static_cast<int>(i)}, stage.axes[i]);
  });
}

/// Devices of the first part to the last, of every stage.
std::vector<std::vector<int>> devices_by_stage(const RandomPlan& random) {
  std::vector<std::vector<int>> result(random.stages.size());
  for (std::size_t s = 0; s < random.stages.size(); ++s) {
    std::vector<int>& devices = result[s] = {random.stages[s].first_device};
    for (const placement::Axis& axis : random.stages[s].axes) {
      std::vector<int> finer;
      for (const int device : devices) {
        for (int i = 0; i < axis.size; ++i) finer.push_back(device + i * axis.stride);
      }
      devices = std::move(finer);
    }
  }
  return result;
}

/// Islands in another order, and within them axes: what the devices are called then.
std::vector<int> rearranged(RandomPlan& random) {
  const std::vector<std::vector<int>> before = devices_by_stage(random);
  const std::vector<Island> all = islands(random);
  int next = 0;
  swap_axes(random);
  for (const int i : shuffled(static_cast<int>(all.size()))) {
    for (const std::size_t stage : all[i].stages)
      random.stages[stage].first_device += next - all[i].first;
    next += all[i].end - all[i].first;
  }
  assign(random);
  const std::vector<std::vector<int>> after = devices_by_stage(random);
  std::vector<int> names(random.devices);
  for (std::size_t s = 0; s < before.size(); ++s) {
    for (std::size_t i = 0; i < before[s].size(); ++i) names[before[s][i]] = after[s][i];
  }
  return names;
}

}  // namespace

TEST_CASE("stages and axes in another order do the same on other devices") {
  always(
      [] {
        RandomPlan random = random_plan(any_grids());
        const Program before = lowering::lower(*random.plan, {});
        const std::vector<int> names = rearranged(random);
        RC_ASSERT(difference(before, lowering::lower(*random.plan, {}), names) == "");
      },
      200);
}

TEST_CASE("a plan of lists does the same on devices of other names") {
  always(
      [] {
        const RandomPlan random = random_plan(Grids::alike);
        if (sums_have_replicas(random)) return;
        const Plan listed = lowering::with_lists(*random.plan);
        const std::vector<int> names = shuffled(random.devices);
        const Program before = lowering::lower(listed, {});
        const Program after = lowering::lower(renamed(listed, names), {});
        RC_ASSERT(difference(before, after, names) == "");
      },
      250);
}

TEST_CASE("lists of any devices communicate as much on devices of other names") {
  // Which of several replicas sends is told by the number of its device, and with that who waits.
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        const Plan listed = lowering::with_lists(*random.plan);
        const Program before = lowering::lower(listed, {});
        const Plan other = renamed(listed, shuffled(random.devices));
        RC_ASSERT(close(communicated(before), communicated(lowering::lower(other, {})), 1e-12));
      },
      60);
}

TEST_CASE("unequal parts on any devices communicate as much on devices of other names") {
  const model::Graph graph = model::gpt(lowering::tiny_gpt);
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::vector<int> names = {0, 1, 2, 3, 4};
    std::shuffle(names.begin(), names.end(), std::mt19937(seed));
    for (const Plan& plan :
         {lowering::random_plan(graph, 5, seed), lowering::random_pipeline(graph, 5, seed)}) {
      const Program before = lowering::lower(plan, lowering::plain_stack());
      const Program after = lowering::lower(renamed(plan, names), lowering::plain_stack());
      CHECK(close(communicated(before), communicated(after), 1e-12));
    }
  }
}

}  // namespace stratagem::sim
