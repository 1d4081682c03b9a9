// One line of figures for every class of devices, then its peak in words.
#include "report/memory_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantity_text.hpp"
#include "report/figure_text.hpp"
#include "report/wrapped.hpp"
#include "study/simulate.hpp"
#include "topology/drives.hpp"

namespace stratagem::report {
namespace {

constexpr const char* memory_columns = "  {:<16} {:>9} {:>9} {:>9} {:>9} {:>18} {:>10}\n";

/// What is there at a peak, largest first.
std::string breakdown_with(const sim::MemoryPeak& peak, Bytes workspace) {
  std::vector<std::pair<Bytes, std::string>> parts;
  for (std::size_t c = 0; c < peak.by_category.size(); ++c) {
    std::string name(program::category_names[c]);
    std::ranges::replace(name, '_', ' ');
    if (peak.by_category[c] > Bytes{}) parts.emplace_back(peak.by_category[c], name);
  }
  if (workspace > Bytes{}) parts.emplace_back(workspace, "workspace");
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<Bytes, std::string>::first);
  std::string text;
  for (const auto& [bytes, name] : parts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, to_text(bytes));
  return text.empty() ? "nothing" : text;
}

std::string allocated_text(const sim::DeviceMemory& device) {
  return breakdown_with(device.peak, device.workspace_allocated ? device.workspace : Bytes{});
}

std::string devices_text(const sim::DeviceMemory& device) {
  if (device.count == 1) return std::to_string(device.device);
  return fmt::format("{} and {} like it", device.device, device.count - 1);
}

std::string communicators_text(const sim::DeviceMemory& device) {
  if (device.communicator_count == 0) return "none";
  return fmt::format("{} in {}", to_text(device.communicators), device.communicator_count);
}

std::string peak_text(const sim::DeviceMemory& device) {
  const std::string at =
      device.at.empty()
          ? "at the begin"
          : fmt::format("at {}, with {}",
                        to_text(sim::to_seconds(device.peak.when - sim::Instant{0})), device.at);
  return wrapped(fmt::format("    allocated most {}: {}", at, allocated_text(device)), 6);
}

std::string free_text(Bytes used, Bytes memory) {
  if (used > memory)
    return fmt::format("  {} short of {}\n", to_text(used - memory), to_text(memory));
  return fmt::format("  {} of {} free\n", to_text(memory - used), to_text(memory));
}

/// What servers keep in one of two places, a line and a breakdown for each.
std::string servers_text(const std::vector<sim::HostMemory>& servers, const std::string& where) {
  std::string text = fmt::format("  {:<16} {:>9}\n", "server", where);
  for (const sim::HostMemory& server : servers) {
    const std::string name =
        server.count == 1 ? std::to_string(server.server)
                          : fmt::format("{} and {} like it", server.server, server.count - 1);
    text += fmt::format("  {:<16} {:>9}\n", name, to_text(server.peak.total));
    text += wrapped("    most of it: " + breakdown(server.peak), 6);
  }
  return text;
}

/// What servers keep in the memory of their processors; nothing if they keep nothing there.
std::string hosts_text(const study::Result& result) {
  const std::vector<sim::HostMemory>& hosts = result.outcome.hosts;
  if (hosts.empty()) return "";
  const std::string text = servers_text(hosts, "on host");
  const auto& memory = result.run->cluster.design().host_memory;
  if (!memory) return text + "  how much memory a server's processors have is not known\n";
  return text + free_text(sim::highest(hosts), *memory);
}

/// The same of their drives.
std::string drives_text(const study::Result& result) {
  const std::vector<sim::HostMemory>& drives = result.outcome.drives;
  if (drives.empty()) return "";
  return servers_text(drives, "on drives") +
         free_text(sim::highest(drives),
                   topology::capacity_of_drives(result.run->cluster.design()));
}

std::string run_text(const study::Result& result) {
  const study::Outcome& outcome = result.outcome;
  std::string text = result.run->name + "\n";
  if (!outcome.metrics) return text + refusal_text(result);
  text += fmt::format(memory_columns, "device", "used", "reserved", "allocated", "context",
                      "communicators", "workspace");
  for (const sim::DeviceMemory& device : outcome.devices) {
    text +=
        fmt::format(memory_columns, devices_text(device), to_text(device.used()),
                    to_text(device.reserved), to_text(device.allocated), to_text(device.context),
                    communicators_text(device), to_text(device.workspace));
    text += peak_text(device);
  }
  text += free_text(outcome.memory.used, result.run->profile.memory.size.value);
  return text + hosts_text(result) + drives_text(result);
}

}  // namespace

std::string breakdown(const sim::DeviceMemory& device) {
  const std::string allocated = allocated_text(device);
  const Bytes free = device.reserved - device.allocated;
  return free > Bytes{} ? allocated + "; free within the allocator " + to_text(free) : allocated;
}

std::string breakdown(const sim::MemoryPeak& peak) { return breakdown_with(peak, {}); }

std::string memory_table(const std::vector<study::Result>& results) {
  std::string text;
  for (const study::Result& result : results) text += (text.empty() ? "" : "\n") + run_text(result);
  return text;
}

}  // namespace stratagem::report
