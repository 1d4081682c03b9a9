// Reads the steal time of /proc/stat: cpu1 user nice system idle iowait irq softirq steal ...
#include "kernels/stolen_time.hpp"

#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace stratagem::kernels {
namespace {

constexpr std::string_view prefix = "cpu";
constexpr int before_steal = 7;  // columns

/// The processor of a line; -1 of the line of all together, and of other lines.
int processor_of(const std::string& name) {
  int number = -1;
  if (name.starts_with(prefix))
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return number;
}

}  // namespace

std::vector<Seconds> stolen_times(std::istream& stat, const std::function<bool(int)>& mine,
                                  double ticks) {
  std::vector<Seconds> stolen;
  for (std::string line; std::getline(stat, line);) {
    std::istringstream columns(line);
    std::string name;
    columns >> name;
    const int processor = processor_of(name);
    if (processor < 0 || !mine(processor)) continue;
    double column = 0;
    for (int i = 0; i < before_steal; ++i) columns >> column;
    stolen.push_back(columns >> column ? Seconds{column / ticks} : Seconds{});
  }
  return stolen;
}

std::vector<Seconds> stolen_times() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  const auto mine = [&](int processor) {
    return processor < CPU_SETSIZE && CPU_ISSET(processor, &allowed) != 0;
  };
  std::ifstream stat("/proc/stat");
  return stolen_times(stat, mine, static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace stratagem::kernels
