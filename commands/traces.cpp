// Traces of a run, as text to be written.
#include "commands/traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/input_error.hpp"
#include "cost/collectives.hpp"
#include "report/chakra/execution_trace.hpp"
#include "report/traces/measured_round.hpp"
#include "report/traces/trace.hpp"
#include "sim/host_memory.hpp"

namespace stratagem::commands {
namespace {

/// By actor, of those that a trace shows: its first device's, which stands for the others.
std::vector<report::LinkRates> link_rates(const study::Run& run, const study::Simulated& simulated,
                                          const std::vector<int>& devices) {
  const sim::Timeline& timeline = simulated.timeline;
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  const std::vector<bool> is_shown = report::shown_actors(timeline, devices);
  std::vector<report::LinkRates> rates(timeline.actors.size());
  for (std::size_t actor = 0; actor < rates.size(); ++actor) {
    if (is_shown[actor])
      rates[actor] = report::link_rates(simulated.program, timeline, collectives,
                                        timeline.actors[actor].device);
  }
  return rates;
}

/// None if no devices were asked for.
std::vector<int> trace_devices(const study::Run& run, const Arguments& asked) {
  if (!asked.has("trace-devices")) return {};
  if (!asked.has("trace")) throw UsageError("--trace-devices needs --trace");
  std::vector<int> devices;
  for (const std::string& text : asked.texts("trace-devices")) {
    const int device = whole_number(text).value_or(-1);
    if (device < 0 || device >= run.gpus)
      throw UsageError(fmt::format("--trace-devices: expected devices from 0 to {}, found {}",
                                   run.gpus - 1, text));
    if (std::ranges::count(devices, device) == 0) devices.push_back(device);
  }
  return devices;
}

}  // namespace

void check_traces(const study::Run& run, const Arguments& asked) {
  constexpr int most = 1024;
  if (asked.has("chakra") && run.gpus > most)
    throw InputError("--chakra", "", fmt::format("at most {} ranks", most),
                     std::to_string(run.gpus));
  trace_devices(run, asked);
}

Output trace_of(const study::Run& run, const study::Simulated& simulated, const Arguments& asked) {
  const std::vector<int> devices = trace_devices(run, asked);
  const auto rounds = static_cast<int>(report::measured_round(simulated.timeline)) + 1;
  return {
      asked.text("trace"),
      report::chrome_trace(
          simulated.program, simulated.timeline, report::trace_of(run.name, simulated),
          {.hosts = sim::host_memory(simulated.program, simulated.timeline,
                                     run.cluster.gpus_per_node(), program::Residence::host, rounds),
           .links = link_rates(run, simulated, devices),
           .devices = devices}),
      fmt::format(
          " of {}{} (open it in https://ui.perfetto.dev)", run.name,
          simulated.outcome.status == study::Outcome::Status::ok ? "" : ", which does not fit")};
}

void add_execution_traces(const study::Simulated& simulated, const std::string& folder,
                          std::vector<Output>& outputs) {
  const std::string prefix = (std::filesystem::path(folder) / "run").string();
  int rank = 0;
  for (std::string& trace : report::execution_traces(simulated.program, simulated.timeline))
    outputs.push_back({fmt::format("{}.{}.et", prefix, rank++), std::move(trace)});
  outputs.push_back(
      {prefix + ".groups.json", report::communicator_groups(simulated.program).text(2) + "\n"});
}

}  // namespace stratagem::commands
