// Reads attributes; collects devices from the tree of PCIe.
#include "topology/importers/inside/nccl_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/input_error.hpp"

namespace stratagem::topology::importers {

using pugi::xml_node;

void NcclFile::refuse(const xml_node& where, const std::string& expected,
                      const std::string& found) const {
  const char* bus = where.attribute("busid").value();
  throw InputError(file_, where.path() + (*bus != '\0' ? fmt::format("[{}]", bus) : ""), expected,
                   found);
}

int NcclFile::whole(const xml_node& element, const char* name, std::optional<int> otherwise) const {
  const std::string text = element.attribute(name).value();
  if (text.empty() && otherwise) return *otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    refuse(element, fmt::format("a whole number as \"{}\"", name), '"' + text + '"');
  return value;
}

int NcclFile::positive(const xml_node& element, const char* name, std::optional<int> otherwise,
                       int most) const {
  const int value = whole(element, name, otherwise);
  if (value < 1 || value > most)
    refuse(element, fmt::format("1 to {} as \"{}\"", most, name), std::to_string(value));
  return value;
}

int NcclDevices::host_of(const xml_node& cpu) {
  const std::string hash = cpu.attribute("host_hash").value();
  return hosts.emplace(hash, static_cast<int>(hosts.size())).first->second;
}

namespace {

void collect(NcclDevices& devices, const NcclFile& file, const xml_node& at, const xml_node& cpu,
             int host) {
  for (const xml_node child : at.children()) {
    const std::string name = child.name();
    if (name == "gpu") {
      devices.gpus.push_back({host, file.whole(child, "dev", {}), child, cpu});
    } else if (name == "net") {
      const bool used = child.attribute("dev") && file.whole(child, "net", 1) != 0;
      if (used) devices.nets.push_back({host, file.whole(child, "dev", {}), child, cpu});
    } else {
      collect(devices, file, child, cpu, host);
    }
  }
}

/// NCCL takes 10 Gb/s where none is said.
int speed_of(const NcclFile& file, const Numbered& net) {
  if (file.whole(net.element, "speed", 0) == 0) return 10'000;
  return file.positive(net.element, "speed", {}, most_rate);
}

void drop_slow_adapters(NcclDevices& devices, const NcclFile& file) {
  for (const Numbered& net : devices.nets)
    devices.fastest = std::max(devices.fastest, speed_of(file, net));
  std::erase_if(devices.nets, [&](const Numbered& net) {
    const bool slow = speed_of(file, net) < devices.fastest;
    if (slow && !devices.dropped.empty()) devices.dropped += ", ";
    if (slow) devices.dropped += net.element.attribute("name").value();
    return slow;
  });
}

}  // namespace

NcclDevices devices_of(const NcclFile& file, const xml_node& system) {
  NcclDevices devices;
  for (const xml_node cpu : system.children("cpu"))
    collect(devices, file, cpu, cpu, devices.host_of(cpu));
  const auto order = [](const Numbered& x, const Numbered& y) {
    return std::tie(x.host, x.dev) < std::tie(y.host, y.dev);
  };
  std::stable_sort(devices.gpus.begin(), devices.gpus.end(), order);
  std::stable_sort(devices.nets.begin(), devices.nets.end(), order);
  drop_slow_adapters(devices, file);
  if (devices.gpus.empty()) file.refuse(system, "at least one <gpu>", "");
  return devices;
}

}  // namespace stratagem::topology::importers
