// One line of figures for every class of devices, then its peak in words.
#include "report/memory_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantity_text.hpp"
#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

constexpr const char* columns = "  {:<16} {:>9} {:>9} {:>9} {:>9} {:>18} {:>10}\n";

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
  return wrapped(fmt::format("    allocated most {}: {}", at, breakdown(device)), 6);
}

std::string run_text(const search::Result& result) {
  const search::Outcome& outcome = result.outcome;
  std::string text = result.run->name + "\n";
  if (!outcome.metrics) return text + "  does not run: " + outcome.reason + "\n";
  text += fmt::format(columns, "device", "used", "reserved", "allocated", "context",
                      "communicators", "workspace");
  for (const sim::DeviceMemory& device : outcome.devices) {
    text +=
        fmt::format(columns, devices_text(device), to_text(device.used()), to_text(device.reserved),
                    to_text(device.allocated), to_text(device.context), communicators_text(device),
                    to_text(device.workspace));
    text += peak_text(device);
  }
  const Bytes memory = result.run->profile.memory.value;
  const Bytes used = outcome.memory.used;
  if (used > memory)
    return text + fmt::format("  {} short of {}\n", to_text(used - memory), to_text(memory));
  return text + fmt::format("  {} of {} free\n", to_text(memory - used), to_text(memory));
}

}  // namespace

std::string breakdown(const sim::DeviceMemory& device) {
  std::vector<std::pair<Bytes, std::string>> parts;
  for (std::size_t c = 0; c < device.peak.by_category.size(); ++c) {
    std::string name(strategies::category_names[c]);
    std::ranges::replace(name, '_', ' ');
    if (device.peak.by_category[c] > Bytes{}) parts.emplace_back(device.peak.by_category[c], name);
  }
  if (device.workspace_allocated && device.workspace > Bytes{})
    parts.emplace_back(device.workspace, "workspace");
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<Bytes, std::string>::first);
  std::string text;
  for (const auto& [bytes, name] : parts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, to_text(bytes));
  return text.empty() ? "nothing" : text;
}

std::string memory_table(const std::vector<search::Result>& results) {
  std::string text;
  for (const search::Result& result : results)
    text += (text.empty() ? "" : "\n") + run_text(result);
  return text;
}

}  // namespace stratagem::report
