// Ranks tell each other where they stand and what they need.
#include "commands/room.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <vector>

namespace stratagem::commands {

std::optional<Bytes> memory_available() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double number = 0; file >> name >> number;) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return Bytes{number * 1024};
  }
  return std::nullopt;
}

Bytes needed_on_server(kernels::Communicator& ranks, Bytes of_this_rank) {
  struct Need {
    std::array<char, 256> host{};
    double bytes = 0;
  };
  Need mine{.host = {}, .bytes = of_this_rank.value};
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Need> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  Bytes sum;
  for (const Need& need : all) {
    if (need.host == mine.host) sum += Bytes{need.bytes};
  }
  return sum;
}

}  // namespace stratagem::commands
