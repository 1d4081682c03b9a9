// A run from its settings to its metrics: plan, program, folding, prices, timeline.
#include "study/simulate.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "lowering/lower.hpp"
#include "sim/busiest_link.hpp"
#include "sim/least_memory.hpp"
#include "sim/steady.hpp"
#include "study/bounds.hpp"
#include "study/plan_of.hpp"
#include "topology/drives.hpp"

namespace stratagem::study {
namespace {

std::string needs(Bytes needed, const std::string& where, const std::string& has, Bytes memory) {
  return "needs " + to_text(needed) + where + ", a " + has + " has " + to_text(memory);
}

void add(std::string& list, const std::string& text) { list += (list.empty() ? "" : "; ") + text; }

/// What is lacking of a memory. Notes in the outcome that something is, or that little is left.
Bytes judge(Outcome& outcome, Bytes used, const std::string& where, const std::string& has,
            Bytes memory) {
  constexpr double roomy = 0.95;  // predictions of memory are a few per cent off
  if (used > memory) {
    add(outcome.reason, needs(used, where, has, memory));
    return used - memory;
  }
  if (used > roomy * memory) {
    add(outcome.tight,
        to_text(used) + where + " of the " + to_text(memory) + " that a " + has + " has");
  }
  return {};
}

/// Servers whose memory is not known have enough.
void judge_memory(Outcome& outcome, const Run& run) {
  outcome.gpu_shortfall =
      judge(outcome, outcome.memory.used, "", "GPU", run.profile.memory.size.value);
  if (const auto& host = run.cluster.design().host_memory) {
    outcome.host_shortfall = judge(outcome, sim::highest(outcome.hosts),
                                   " of the memory of its processors", "server", *host);
  }
  outcome.drives_shortfall = judge(outcome, sim::highest(outcome.drives), " on drives", "server",
                                   topology::capacity_of_drives(run.cluster.design()));
  if (outcome.reason.empty()) return;
  outcome.status = Outcome::Status::out_of_memory;
  outcome.tight.clear();
}

/// Of the GPU that is farthest from its processor.
Seconds host_links(const topology::Cluster& cluster) {
  Seconds slowest;
  for (int gpu = 0; gpu < cluster.gpus_per_node(); ++gpu)
    slowest = std::max(slowest, cluster.latency_to_host(gpu));
  return slowest;
}

/// Does not even the least that the program needs fit? Then the outcome says so.
bool surely_misfits(Outcome& outcome, const Run& run, const program::Program& program) {
  const Bytes memory = run.profile.memory.size.value;
  const Bytes least = sim::least_memory(program, run.profile, run.stack, groups_beside(run));
  if (least <= memory) return false;
  outcome.status = Outcome::Status::out_of_memory;
  outcome.reason = needs(least, " at least", "GPU", memory);
  outcome.memory.used = least;
  outcome.gpu_shortfall = least - memory;
  return true;
}

/// Is the run sure to take longer than was asked for? Then the result says so.
bool surely_longer(Simulated& result, const SimulateOptions& options, Seconds least) {
  if (least <= *options.no_longer_than) return false;
  result.outcome.status = Outcome::Status::not_asked;
  result.at_least = least;
  return true;
}

Simulated play(const Run& run, const SimulateOptions& options) {
  const strategies::Plan plan = plan_of(run);
  Simulated result{.program = program_of(run, plan), .timeline = {}, .outcome = {}, .at_least = {}};
  result.outcome.gpus = run.gpus;
  if (options.memory_first && surely_misfits(result.outcome, run, result.program)) return result;
  const sim::Prices prices = sim::price(result.program, run.profile, run.stack,
                                        run.cluster.gpus_per_node(), host_links(run.cluster));
  if (options.no_longer_than &&
      surely_longer(result, options, busiest_queue(run, result.program, prices)))
    return result;
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  sim::Folding folding = sim::fold(result.program, collectives, options.folded);
  folding.launch_queue = cost::launch_queue_of(run.profile);
  folding.pass = sim::pass_time(run.profile, run.stack);
  if (options.no_longer_than &&
      surely_longer(result, options, sim::busiest_link(result.program, folding)))
    return result;
  result.timeline = sim::run_until_steady(result.program, folding, prices, options.repeats);
  Outcome& outcome = result.outcome;
  std::vector<std::string> segments;
  for (const model::Segment& segment : plan.graph().segments) segments.push_back(segment.name);
  outcome.devices = sim::device_memory(result.program, result.timeline, run.profile, run.stack,
                                       segments, groups_beside(run));
  outcome.memory = sim::highest(outcome.devices);
  outcome.hosts = sim::host_memory(result.program, result.timeline, run.cluster.gpus_per_node());
  outcome.drives = sim::host_memory(result.program, result.timeline, run.cluster.gpus_per_node(),
                                    program::Residence::drives);
  std::vector<sim::MemoryPeak> peaks;
  for (const sim::DeviceMemory& device : outcome.devices) peaks.push_back(device.peak);
  outcome.metrics = sim::metrics(result.program, result.timeline, peaks);
  outcome.model_flops = run.batch.micro_batches * model::step_flops(*run.graph);
  outcome.weakest =
      weakest_provenance(run.profile, run.stack, result.program, run.cluster.gpus_per_node());
  if (const auto& drives = run.cluster.design().drives)
    include_drives(outcome.weakest, *drives, result.program);
  outcome.extrapolated =
      extrapolated(run.profile, run.stack, result.program, run.cluster.gpus_per_node());
  judge_memory(outcome, run);
  return result;
}

}  // namespace

FlopsPerSecond Outcome::model_rate() const { return model_flops / metrics->iteration_time / gpus; }

FlopsPerSecond Outcome::hardware_rate() const {
  return metrics->hardware_flops / metrics->iteration_time / gpus;
}

Simulated simulate(const Run& run, const SimulateOptions& options) {
  try {
    return play(run, options);
  } catch (const InputError& error) {
    throw located(run, error);
  }
}

Simulated simulate_or_refuse(const Run& run, const SimulateOptions& options) {
  try {
    return simulate(run, options);
  } catch (const InputError& error) {
    Simulated none;
    none.outcome = {.status = Outcome::Status::refused, .reason = error.what(), .gpus = run.gpus};
    return none;
  }
}

}  // namespace stratagem::study
