// The time of every task on an idle machine; of collectives only what the host takes.
#pragma once

#include <functional>
#include <vector>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "program/program.hpp"
#include "sim/instant.hpp"

namespace stratagem::sim {

/// The times of one task: on its stream; on the host that launches it; until its first kernel is
/// launched; and of its last kernel alone (it cannot end sooner after its own launch). Also how
/// much of the stream's time the device idles between its kernels, which communication beside the
/// task does not stretch. Collectives have only host times here.
struct Price {
  Ticks device;
  Ticks host;
  Ticks first_launch;
  Ticks last_kernel;
  Ticks idle;
};

/// By block and task.
using Prices = std::vector<std::vector<Price>>;

/// Prices by a function of the task, for tests and machines that are not in a profile.
Prices price(const program::Program& program, const std::function<Price(const program::Task&)>& of);

/// What the host takes for a pass of a cell besides its launches: as so many of these.
Ticks pass_time(const cost::Profile& profile, const cost::Stack& stack);

/// Prices from a profile and a software stack.
///   launch = profile.launch * stack.host_factor
///   host = launches * launch, but kernel_floor for each in a library, all but the first of a loop;
///   of a CUDA graph one launch
///   device = kernel_time of the stack on the slowest GPU (cost/speed_spread.hpp) + idle
///   idle = (synchronisations - 1) * launch,  last_kernel = its share of the kernel_time
/// because after every synchronisation but the last one of a task the device idles until the next
/// launch. Optimizer steps on the host share it with those of as many ranks as a server has (at
/// most `gpus_per_server`), since all step at about the same time. Pageable copies take longer by
/// the latency of their links, `host_links`, beyond host_copy.link_latency. Whether small kernels
/// wait for their launches depends on how far ahead the host is; the engine decides that.
Prices price(const program::Program& program, const cost::Profile& profile,
             const cost::Stack& stack, int gpus_per_server = 1, Seconds host_links = {});

}  // namespace stratagem::sim
