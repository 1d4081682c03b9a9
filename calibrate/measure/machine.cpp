// Asks Linux about the machine.
#include "calibrate/measure/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>

namespace stratagem::calibrate {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

double system_number(int name) { return static_cast<double>(std::max(0L, sysconf(name))); }

}  // namespace

Machine this_machine() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const double caches[] = {system_number(_SC_LEVEL4_CACHE_SIZE),
                           system_number(_SC_LEVEL3_CACHE_SIZE),
                           system_number(_SC_LEVEL2_CACHE_SIZE)};
  return {.host = host.data(),
          .processor = processor_name(),
          .cache = Bytes{*std::ranges::max_element(caches)},
          .memory = Bytes{system_number(_SC_PHYS_PAGES) * system_number(_SC_PAGESIZE)},
          .cores = static_cast<int>(std::max(1.0, system_number(_SC_NPROCESSORS_ONLN)))};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

}  // namespace stratagem::calibrate
