// Composes a plan from a strategy, or reads a plan file. Lowering names no path for the whole plan:
// in a scenario that is "/strategy", in a plan file "/primitives", or the primitive whose orders
// close a cycle.
#include "study/plan_of.hpp"

#include <algorithm>

#include "lowering/lower.hpp"
#include "strategies/language/plan_file.hpp"
#include "strategies/parallel/all.hpp"
#include "study/order_cycle.hpp"

namespace stratagem::study {

using strategies::Keep;

namespace {

/// What is to lie on drives needs some.
void check_drives(const Run& run, const strategies::Plan& plan) {
  const std::vector<Keep>& rules = plan.residency.rules();
  const auto there = std::ranges::find(rules, Keep::Where::drives, &Keep::where);
  if (there == rules.end() || run.cluster.design().drives) return;
  throw InputError("", there->said,
                   "a cluster whose servers have drives (its key \"drives\" describes them)",
                   run.cluster.design().name + " without");
}

/// Where anything is to lie in the memory of processors there must be some, and steps there take a
/// time.
void check_hosts(const Run& run, const strategies::Plan& plan) {
  if (plan.steps.on_host && !run.profile.host_memory_bandwidth) {
    throw InputError("", plan.steps.said,
                     "a profile with host_memory_bandwidth, what optimizer steps on a server's "
                     "processors reach, such as \"180 GB/s\"",
                     "profile " + run.profile.name + " without");
  }
  const auto& memory = run.cluster.design().host_memory;
  const std::vector<Keep>& rules = plan.residency.rules();
  const auto away = std::ranges::find_if(rules, [](const Keep& rule) {
    return rule.where == Keep::Where::host || rule.where == Keep::Where::drives;
  });
  const bool waits = away != rules.end();
  if (!memory || *memory > Bytes{} || !(plan.steps.on_host || waits)) return;
  throw InputError("", plan.steps.on_host ? plan.steps.said : away->said,
                   "a cluster whose servers have memory of their processors",
                   run.cluster.design().name + " without");
}

}  // namespace

strategies::Plan plan_of(const Run& run) {
  if (run.refused) throw *run.refused;
  if (run.plan) return strategies::read_plan(*run.plan, *run.graph, run.batch.micro_batches);
  return strategies::compose(*run.graph, run.batch.micro_batches, run.options, run.strategy);
}

program::Program program_of(const Run& run, const strategies::Plan& plan) {
  check_hosts(run, plan);
  check_drives(run, plan);
  const auto link = [&](int from, int to) {
    const bool known = std::max(from, to) < run.cluster.gpus();
    return known ? run.cluster.bandwidth(from, to) : BytesPerSecond{};
  };
  const Bytes memory = run.profile.memory.size.value - run.profile.memory.context.value;
  return lowering::lower(plan, run.stack, run.training, {.link = link, .memory = memory});
}

std::vector<int> groups_beside(const Run& run) {
  const strategies::Options& degrees = run.options;
  const std::map<cost::RankGroup, int> ranks = {
      {cost::RankGroup::world, run.gpus},
      {cost::RankGroup::data, degrees.data},
      {cost::RankGroup::tensor, degrees.tensor},
      {cost::RankGroup::pipeline, degrees.pipeline},
      {cost::RankGroup::model, degrees.tensor * degrees.pipeline}};
  std::vector<int> sizes;
  for (const auto& [group, number] : cost::rules_of<cost::Communicators>(run.stack))
    sizes.insert(sizes.end(), number, ranks.at(group));
  return sizes;
}

InputError located(const Run& run, const InputError& error) {
  if (!error.file.empty()) return named(run.origin, error);
  const bool of_the_whole = error.path.empty() || error.path.starts_with("/strategy");
  if (run.plan && of_the_whole) {
    const auto cycle = study::order_cycle(*run.plan, *run.graph, run.batch.micro_batches);
    if (cycle) return {run.plan->file(), cycle->path, cycle->expected, cycle->found};
  }
  if (run.plan && (of_the_whole || error.path.starts_with("/primitives"))) {
    return {run.plan->file(), of_the_whole ? "/primitives" : error.path, error.expected,
            error.found};
  }
  return named(run.origin,
               {run.origin.file, run.origin.path + (error.path.empty() ? "/strategy" : error.path),
                error.expected, error.found});
}

InputError named(const Origin& origin, const InputError& error) {
  if (error.file != origin.file || !error.path.starts_with(origin.path + "/")) return error;
  const std::string path = error.path.substr(origin.path.size());
  for (auto key = origin.set.rbegin(); key != origin.set.rend(); ++key) {
    const bool below = (path + "/").starts_with(key->path + "/");
    if (below) return {key->option, path.substr(key->path.size()), error.expected, error.found};
    const bool around = key->path.starts_with(path + "/") && path.find('/', 1) < path.size();
    if (around)
      return {error.file, error.path, error.expected, error.found + " with " + key->option};
  }
  return error;
}

}  // namespace stratagem::study
