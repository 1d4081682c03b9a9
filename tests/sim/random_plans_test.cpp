// Properties of all plans, held by random ones: they lower to programs that can run, every operator
// gets the parts that it wants, nothing more is communicated than must be, and virtual time obeys
// bounds and symmetry.
#include <cmath>
#include <map>
#include <numeric>

#include "sim/engine.hpp"
#include "strategies/check.hpp"
#include "tests/sim/expected_volume.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/random_plan.hpp"

namespace stratagem::sim {

namespace {

using strategies::Program;
using strategies::Stream;
using strategies::Task;

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

std::vector<double> sizes(const strategies::Block& block, const std::vector<int>& slots) {
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
void check_collective(const strategies::Block& block, const Task& task, double n) {
  const auto& collective = std::get<strategies::Collective>(task.work);
  const std::vector<double> read = sizes(block, task.reads);
  const std::vector<double> written = sizes(block, task.writes);
  const double payload = collective.payload.value;
  if (task.stream == Stream::gradient_communication) {
    RC_ASSERT(task.reads == task.writes);
    RC_ASSERT(close(std::accumulate(read.begin(), read.end(), 0.0), payload, 1e-12));
    return;
  }
  if (strategies::transfers(task.stream)) {
    RC_ASSERT(read.size() + written.size() == 1);
    RC_ASSERT(close((read.empty() ? written : read)[0], payload, 1e-12));
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

/// Devices of the communicator in which the first device of a sequence posts a collective.
double ranks_of(const Program& program, int sequence, const strategies::Collective& collective) {
  for (const strategies::Device& device : program.devices) {
    if (device.sequence != sequence) continue;
    return static_cast<double>(program.communicators[device.groups[collective.group]].ranks.size());
  }
  return 0;
}

/// Calls of a sequence with what they run: visit(block, task).
template <typename Visit>
void each_task(const Program& program, int sequence, const Visit& visit) {
  for (const strategies::Call& call : program.sequences[sequence].calls) {
    const strategies::Block& block = program.blocks[call.block];
    for (const Task& task : block.tasks) visit(block, task);
  }
}

/// Bytes that one rank of n sends, and receives, in a collective.
double moved(const strategies::Collective& collective, double n) {
  const double payload = collective.payload.value;
  if (collective.kind == cost::CollectiveKind::send) return payload;
  const double share = (n - 1) / n * payload;
  return collective.kind == cost::CollectiveKind::all_reduce ? 2 * share : share;
}

Volumes volumes_of(const Program& program, int sequence) {
  Volumes volumes;
  each_task(program, sequence, [&](const strategies::Block&, const Task& task) {
    const auto* collective = std::get_if<strategies::Collective>(&task.work);
    if (collective == nullptr) return;
    const double bytes = moved(*collective, ranks_of(program, sequence, *collective));
    if (task.stream == Stream::communication) volumes.within += bytes;
    if (task.stream == Stream::gradient_communication) volumes.gradients += bytes;
    if (task.stream == Stream::send_forward || task.stream == Stream::send_backward)
      volumes.sent += bytes;
  });
  return volumes;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1.0, a, b}); }

/// Picoseconds, by a task's name alone.
Ticks duration(const std::string& name) {
  std::int64_t sum = 7;
  for (const char letter : name) sum = (sum * 31 + letter) % 997;
  return {sum + 1};
}

Prices prices_by_name(const Program& program) {
  return price(program, [](const Task& task) { return Price{.device = duration(task.name)}; });
}

/// GPUs that send a byte in a picosecond.
Timeline played(const Program& program) {
  const auto devices = static_cast<int>(program.devices.size());
  const Cast actors = cast(program, instant_cluster(devices, {1e12}), ideal_network(), false);
  return run(program, actors, prices_by_name(program), 1);
}

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

/// Device d becomes names[d].
Program renamed(const Program& program, const std::vector<int>& names) {
  Program result = program;
  for (std::size_t d = 0; d < names.size(); ++d) result.devices[names[d]] = program.devices[d];
  for (strategies::Communicator& communicator : result.communicators) {
    for (int& rank : communicator.ranks) rank = names[rank];
  }
  return result;
}

}  // namespace

TEST_CASE("any legal plan lowers to a program that can run") {
  always(
      [] {
        const RandomPlan random = random_plan();
        strategies::check(strategies::lower(*random.plan, {}));
      },
      1500);
}

TEST_CASE("every operator reads and writes the parts that its split says, whatever came before") {
  always(
      [] {
        const RandomPlan random = random_plan();
        const Program program = strategies::lower(*random.plan, {});
        const auto operators = by_name(*random.graph);
        for (std::size_t s = 0; s < program.sequences.size(); ++s) {
          const auto sequence = static_cast<int>(s);
          each_task(program, sequence, [&](const strategies::Block& block, const Task& task) {
            if (const auto* c = std::get_if<strategies::Collective>(&task.work))
              return check_collective(block, task, ranks_of(program, sequence, *c));
            const auto found = operators.find(task.name.substr(0, task.name.find(' ')));
            if (found == operators.end()) return;  // an optimizer step
            const model::Operator& op = *found->second;
            RC_ASSERT(hold(sizes(block, task.reads),
                           parts(random, op, op.inputs, op.annotation.inputs, false)));
            RC_ASSERT(sizes(block, task.writes) ==
                      parts(random, op, op.outputs, op.annotation.outputs, true));
          });
        }
      },
      600);
}

TEST_CASE("plans communicate what the cheapest conversions, reductions and borders need") {
  always(
      [] {
        const RandomPlan random = random_plan(true);
        const Program program = strategies::lower(*random.plan, {});
        PlanVolume expected(random);
        for (std::size_t d = 0; d < program.devices.size(); ++d) {
          const int sequence = program.devices[d].sequence;
          const int block = random.devices / (1 + std::ranges::max(random.rank_of_stage));
          const Volumes& wanted = expected.of_rank(static_cast<int>(d) / block);
          const Volumes found = volumes_of(program, sequence);
          RC_ASSERT(near(found.within, wanted.within));
          RC_ASSERT(near(found.gradients, wanted.gradients));
          RC_ASSERT(near(found.sent, wanted.sent));
        }
      },
      600);
}

TEST_CASE("no iteration is shorter than its data's longest way or any device's work") {
  always(
      [] {
        const RandomPlan random = random_plan();
        const Program program = strategies::lower(*random.plan, {});
        const std::int64_t makespan = played(program).iteration_ends.front().picoseconds;
        RC_ASSERT(makespan >= longest_way(*random.graph));
        for (std::size_t s = 0; s < program.sequences.size(); ++s) {
          std::int64_t busy = 0;
          each_task(program, static_cast<int>(s), [&](const strategies::Block&, const Task& task) {
            if (task.stream == Stream::compute) busy += duration(task.name).count;
          });
          RC_ASSERT(makespan >= busy);
        }
      },
      500);
}

TEST_CASE("on a uniform network the names of devices change nothing") {
  always(
      [] {
        const RandomPlan random = random_plan();
        const Program program = strategies::lower(*random.plan, {});
        const std::vector<int> names = shuffled(random.devices);
        const Timeline before = played(program);
        const Timeline after = played(renamed(program, names));
        for (std::size_t d = 0; d < names.size(); ++d) {
          RC_ASSERT(before.times[d].begins == after.times[names[d]].begins);
          RC_ASSERT(before.times[d].ends == after.times[names[d]].ends);
        }
      },
      300);
}

}  // namespace stratagem::sim
