// Properties of all plans, held by random ones: they lower to programs that can run, every operator
// gets the parts that it wants, nothing more is communicated than must be, and virtual time obeys
// bounds.
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "base/input_error.hpp"
#include "lowering/redistribute/redistribute.hpp"
#include "program/check/check.hpp"
#include "tests/lowering/redistribute/played.hpp"
#include "tests/sim/found_volume.hpp"
#include "tests/sim/priced_by_name.hpp"

namespace stratagem::sim {

namespace {

using program::Program;
using program::Stream;
using program::Task;

double elements_of_part(const model::Tensor& tensor, const std::vector<model::Term>& terms,
                        const RandomPlan& random, const model::Operator& op) {
  auto elements = static_cast<double>(model::element_count(tensor));
  const auto& placement = random.plan->placement(
      op.forward >= 0 ? op.forward : static_cast<int>(&op - random.graph->operators.data()));
  for (std::size_t axis = 0; axis < placement.dims.size(); ++axis) {
    if (model::dimension_of(terms, placement.dims[axis]) >= 0)
      elements /= placement.axes[axis].size;
  }
  return elements;
}

/// Bytes of the parts that an operator reads or writes and that are buffers of a block.
std::vector<double> parts(const RandomPlan& random, const model::Operator& op,
                          const std::vector<model::TensorId>& tensors,
                          const std::vector<std::vector<model::Term>>& terms, bool written) {
  std::vector<double> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const model::Tensor& tensor = random.graph->tensors[tensors[i]];
    if (tensor.role == model::Role::input || tensor.role == model::Role::parameter) continue;
    if (written && op.pass == model::Pass::weight_gradient) continue;
    result.push_back(elements_of_part(tensor, terms[i], random, op) *
                     model::size_of(tensor.type).value);
  }
  return result;
}

std::vector<double> sizes(const program::Block& block, const std::vector<int>& slots) {
  std::vector<double> result;
  for (const int slot : slots) result.push_back(block.slots[slot].bytes.value);
  return result;
}

/// A part may be cut out of a buffer that holds several of its size.
bool hold(const std::vector<double>& buffers, const std::vector<double>& wanted) {
  return std::ranges::equal(buffers, wanted, [](double buffer, double part) {
    return buffer >= part && std::fmod(buffer, part) == 0;
  });
}

/// Bytes before and after a collective of n ranks fit its payload.
void check_collective(const program::Block& block, const Task& task, double n) {
  const auto& collective = std::get<program::Collective>(task.work);
  const std::vector<double> read = sizes(block, task.reads);
  const std::vector<double> written = sizes(block, task.writes);
  const double payload = collective.payload.value;
  if (task.stream == Stream::gradient_communication) {
    RC_ASSERT(task.reads == task.writes);
    RC_ASSERT(close(std::accumulate(read.begin(), read.end(), 0.0), payload, 1e-12));
    return;
  }
  if (program::transfers(task.stream)) {
    RC_ASSERT(read.size() + written.size() == 1);
    const double buffer = (read.empty() ? written : read)[0];
    const bool cut = !read.empty() && crosses(block);  // out of a larger buffer
    RC_ASSERT((cut ? buffer >= payload : close(buffer, payload, 1e-12)));
    return;
  }
  RC_ASSERT(read.size() == 1 && written.size() == 1);
  const bool gathers = collective.kind == cost::CollectiveKind::all_gather;
  const bool scatters = collective.kind == cost::CollectiveKind::reduce_scatter;
  RC_ASSERT(hold(read, {gathers ? payload / n : payload}));
  if (task.reads == task.writes) return;  // in place
  RC_ASSERT(close(written[0], scatters ? payload / n : payload, 1e-12));
}

/// Operators by the names of their tasks.
std::map<std::string, const model::Operator*> by_name(const model::Graph& graph) {
  std::map<std::string, const model::Operator*> result;
  for (const model::Operator& op : graph.operators) {
    if (op.pass != model::Pass::optimizer) result[op.name.substr(op.name.find('.') + 1)] = &op;
  }
  return result;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1.0, a, b}); }

/// The longest way of one micro-batch through operators that read each other's results.
std::int64_t longest_way(const model::Graph& graph) {
  std::map<model::TensorId, std::int64_t> there;
  std::int64_t longest = 0;
  for (const model::Operator& op : graph.operators) {
    if (op.pass == model::Pass::optimizer) continue;
    std::int64_t end = 0;
    for (const model::TensorId tensor : op.inputs) end = std::max(end, there[tensor]);
    end += duration(op.name.substr(op.name.find('.') + 1)).count;
    for (const model::TensorId tensor : op.outputs) there[tensor] = end;
    longest = std::max(longest, end);
  }
  return longest;
}

/// Any of them, perhaps none.
std::vector<std::string> some_of(const std::set<std::string>& names) {
  std::vector<std::string> some;
  std::ranges::copy_if(names, std::back_inserter(some),
                       [](const std::string&) { return pick(0, 3) > 0; });
  return some;
}

/// Rules of residency, any that go together.
void keep_somewhere(strategies::Plan& plan, const std::vector<std::string>& axes) {
  using strategies::Keep;
  if (!axes.empty() && pick(0, 3) > 0) plan.steps.divided = axes;
  const std::vector<std::string>& divided = plan.steps.divided;
  if (!divided.empty() && pick(0, 1) == 1)
    plan.residency.keep({.what = Keep::What::gradients, .divided = divided});
  plan.steps.on_host = pick(0, 3) == 0;
  const bool away = plan.steps.on_host && pick(0, 1) == 0;
  plan.steps.delayed = plan.steps.on_host && !away && pick(0, 1) == 0;
  if (plan.steps.on_host && pick(0, 1) == 0)
    plan.residency.keep({.what = Keep::What::states, .where = Keep::Where::drives});
  const Keep::Where place = pick(0, 1) == 0 ? Keep::Where::host : Keep::Where::drives;
  const int often = away ? 0 : pick(0, 2);
  if (often < 2) {
    plan.residency.keep({.what = Keep::What::parameters,
                         .between = often == 0 ? Keep::Between::passes : Keep::Between::iterations,
                         .where = away ? place : Keep::Where::device,
                         .divided = divided,
                         .ahead = pick(0, 2)});
  }
  std::vector<int> segments;
  for (int i = 0; i < static_cast<int>(plan.graph().segments.size()); ++i) {
    if (pick(0, 1) == 1) segments.push_back(i);
  }
  if (segments.empty()) return;
  plan.residency.keep({.what = Keep::What::activations,
                       .segments = segments,
                       .where = Keep::Where::host,
                       .ahead = pick(0, 2)});
}

}  // namespace

TEST_CASE("any legal plan lowers to a program that can run") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        program::check(lowering::lower(*random.plan, {}));
      },
      600);
}

TEST_CASE(
    "plans with shards, swaps and steps on the host can run, and copy back what they copy out") {
  always(
      [&] {
        const RandomPlan random = random_plan(any_grids());
        strategies::Plan& plan = *random.plan;
        std::set<std::string> axes;
        for (const model::OpId op : plan.operators()) {
          for (const placement::Axis& axis : plan.placement(op).axes) axes.insert(axis.name);
        }
        keep_somewhere(plan, some_of(axes));
        const Program program = lowering::lower(plan, {});  // checks it
        for (std::size_t s = 0; s < program.sequences.size(); ++s) {
          double out = 0;
          double back = 0;
          each_task(program, static_cast<int>(s), [&](const program::Block&, const Task& task) {
            const auto* work = std::get_if<program::Collective>(&task.work);
            // Gradients go, weights come back from there: of those what is swapped is told by its
            // task.
            if (work == nullptr || !task.name.starts_with("copy")) return;
            if (work->kind == cost::CollectiveKind::to_host) out += work->payload.value;
            if (work->kind == cost::CollectiveKind::from_host) back += work->payload.value;
          });
          RC_ASSERT(out == back);
        }
      },
      600);
}

TEST_CASE("whatever hosts wait for, devices do not wait for each other for ever, or it is said") {
  int refused = 0;
  always(
      [&] {
        const RandomPlan random = random_plan(any_grids());
        strategies::Plan& plan = *random.plan;
        std::set<std::string> axes;
        for (const model::OpId op : plan.operators()) {
          for (const placement::Axis& axis : plan.placement(op).axes) axes.insert(axis.name);
        }
        const bool keeps = pick(0, 1) == 1;
        if (keeps) keep_somewhere(plan, some_of(axes));
        cost::Stack stack;
        using cost::HostWaits;
        for (const HostWaits rule :
             {HostWaits::each_micro_batch, HostWaits::each_pass, HostWaits::each_received_pass,
              HostWaits::each_exchange, HostWaits::each_launch}) {
          if (pick(0, 3) == 0) stack.rules.emplace_back(rule);
        }
        if (pick(0, 1) == 1) stack.rules.emplace_back(cost::ShardCollectives{.gathers_wait = true});
        try {
          const Program program = lowering::lower(plan, stack);  // checks it
          // That cluster has no memory of hosts.
          if (!keeps) RC_ASSERT(played(program).iteration_ends.front().picoseconds > 0);
        } catch (const InputError& error) {
          // Devices may launch gathers ahead in different orders of cells.
          using What = strategies::Keep::What;
          RC_ASSERT(!plan.divided(What::parameters).empty() || !plan.steps.divided.empty() ||
                    plan.residency.of(What::parameters) != nullptr);
          RC_ASSERT(error.expected.find("where hosts wait (") != std::string::npos);
          ++refused;
        }
      },
      1000);
  CHECK(refused <= 20);
}

TEST_CASE("every operator reads and writes the parts that its split says, whatever came before") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        const Program program = lowering::lower(*random.plan, {});
        const auto operators = by_name(*random.graph);
        for (int device = 0; device < random.devices; ++device) {
          each_collective(program, device,
                          [&](const auto& block, const auto& task, const auto&, double n) {
                            check_collective(block, task, n);
                          });
          const int sequence = program.devices[device].sequence;
          each_task(program, sequence, [&](const program::Block& block, const Task& task) {
            if (std::holds_alternative<program::Collective>(task.work)) return;
            const auto found = operators.find(task.name.substr(0, task.name.find(' ')));
            if (found == operators.end())
              return;  // an optimizer step, or a step of a redistribution
            const model::Operator& op = *found->second;
            RC_ASSERT(hold(sizes(block, task.reads),
                           parts(random, op, op.inputs, op.annotation->inputs, false)));
            RC_ASSERT(sizes(block, task.writes) ==
                      parts(random, op, op.outputs, op.annotation->outputs, true));
          });
        }
      },
      300);
}

TEST_CASE("plans communicate what the cheapest conversions, reductions and borders need") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids(), {.cuts = true});
        const Program program = lowering::lower(*random.plan, {});
        const PlanVolume expected(random);
        for (int device = 0; device < random.devices; ++device) {
          const Volumes wanted = expected.on(device);
          const Volumes found = volumes_on(program, device);
          RC_ASSERT(near(found.within, wanted.within));
          RC_ASSERT(near(found.gradients, wanted.gradients));
          RC_ASSERT(near(found.sent, wanted.sent));
        }
      },
      300);
}

TEST_CASE("between unequal grids goes the analytical volume of the steps that were chosen") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids(), {.cuts = true});
        std::map<cost::CollectiveKind, double> wanted;
        const PlanVolume expected(random);
        for (const Crossed& one : expected.crossed()) {
          const model::Tensor& tensor = random.graph->tensors[one.tensor];
          const double bytes = model::size_of(tensor.type).value * random.plan->micro_batches;
          for (const auto& [kind, elements] :
               volume(redistribute(tensor.shape, one.leaves, one.arrives)))
            wanted[lowering::collective(kind)] += elements * bytes;
        }
        const auto found = redistribution_volume(lowering::lower(*random.plan, {}));
        RC_ASSERT(found.size() == wanted.size());
        for (const auto& [kind, bytes] : wanted) {
          RC_ASSERT(near(found.at(kind), bytes));
        }
      },
      300);
}

TEST_CASE("between unequal grids every element that a part reads comes from the producers once") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids(), {.cuts = true});
        const PlanVolume expected(random);
        for (const Crossed& one : expected.crossed()) {
          lowering::PlayedSteps played(one.leaves);
          played.run(
              redistribute(random.graph->tensors[one.tensor].shape, one.leaves, one.arrives));
          demand_delivery(played, one.arrives);
        }
      },
      25);
}

TEST_CASE("no iteration is shorter than its data's longest way or any device's work") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        const Program program = lowering::lower(*random.plan, {});
        const std::int64_t makespan = played(program).iteration_ends.front().picoseconds;
        RC_ASSERT(makespan >= longest_way(*random.graph));
        for (std::size_t s = 0; s < program.sequences.size(); ++s) {
          std::int64_t busy = 0;
          each_task(program, static_cast<int>(s), [&](const program::Block&, const Task& task) {
            if (task.stream == Stream::compute) busy += duration(task.name).count;
          });
          RC_ASSERT(makespan >= busy);
        }
      },
      250);
}

}  // namespace stratagem::sim
