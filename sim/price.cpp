// Prices equal kernels once.
#include "sim/price.hpp"

#include <algorithm>
#include <map>

#include "cost/ring.hpp"
#include "cost/speed_spread.hpp"
#include "sim/time_overflow.hpp"

namespace stratagem::sim {
namespace {

/// Of launching a kernel; `launch`: one by the framework.
Seconds host_time(const cost::Kernel& kernel, const cost::Profile& profile, Seconds launch) {
  const Seconds in_library = profile.kernels.floor.value;
  switch (kernel.by) {
    case cost::LaunchedBy::framework:
      return kernel.launches * launch;
    case cost::LaunchedBy::loop:
      return kernel.launches == 0 ? Seconds{} : launch + (kernel.launches - 1) * in_library;
    case cost::LaunchedBy::library:
      return kernel.launches * in_library;
    case cost::LaunchedBy::graph:
      return launch;
    case cost::LaunchedBy::replay:
      return {};
  }
  return {};
}

/// Until its first kernel is launched.
Seconds first_launch(const cost::Kernel& kernel, const cost::Profile& profile, Seconds launch) {
  cost::Kernel first = kernel;
  first.launches = 1;
  return host_time(first, profile, launch);
}

}  // namespace

Prices price(const program::Program& program,
             const std::function<Price(const program::Task&)>& of) {
  Prices prices;
  prices.reserve(program.blocks.size());
  for (const program::Block& block : program.blocks) {
    prices.emplace_back();
    prices.back().reserve(block.tasks.size());
    for (const program::Task& task : block.tasks) prices.back().push_back(of(task));
  }
  return prices;
}

Ticks pass_time(const cost::Profile& profile, const cost::Stack& stack) {
  return to_ticks(cost::rule_of<cost::PassWork>(stack).launches * stack.host_factor.value *
                  profile.launch.value);
}

Prices price(const program::Program& program, const cost::Profile& profile,
             const cost::Stack& stack, int gpus_per_server, Seconds host_links) {
  const auto gpus = static_cast<int>(program.devices.size());
  const int ranks = std::min(gpus_per_server, gpus);
  const double slowest = cost::slowest_of(gpus, profile);
  const Seconds launch = profile.launch.value * stack.host_factor.value;
  const Seconds farther = cost::excess(host_links, profile.host_copy.link_latency);
  std::map<cost::Kernel, Seconds> known;
  const auto of_kernel = [&](const program::Task& task, const cost::Kernel& kernel) {
    const auto [found, fresh] = known.try_emplace(kernel);
    if (fresh) {
      found->second = (cost::runs_at_its_clock(kernel.kind) ? slowest : 1) *
                      cost::kernel_time(kernel, profile, stack);
      if (kernel.kind == cost::KernelKind::host_copy) found->second += kernel.launches * farther;
    }
    if (kernel.kind == cost::KernelKind::host_optimizer)
      return Price{.device = to_ticks(ranks * found->second)};
    const int drained = std::max(task.synchronizations - 1, 0);
    return Price{.device = to_ticks(found->second + drained * launch),
                 .host = to_ticks(host_time(kernel, profile, launch)),
                 .first_launch = to_ticks(first_launch(kernel, profile, launch)),
                 .last_kernel = to_ticks(found->second / std::max(kernel.launches, 1)),
                 .idle = to_ticks(drained * launch)};
  };
  return price(program, [&](const program::Task& task) {
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel == nullptr) {
      const bool in_library = std::get<program::Collective>(task.work).in_library;
      const Ticks host = to_ticks(in_library ? profile.kernels.floor.value : launch);
      return Price{.device = {}, .host = host, .first_launch = host};
    }
    try {
      return of_kernel(task, *kernel);
    } catch (const Uncountable&) {
      throw uncountable(task.name, *kernel, profile, stack, gpus);
    }
  });
}

}  // namespace stratagem::sim
