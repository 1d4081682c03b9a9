// Sums up what the ranks of each machine need, and compares it with its free memory.
#include "commands/execution/free_memory.hpp"

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

namespace {

struct Need {
  std::array<char, 256> host{};
  double bytes = 0;
  std::array<char, 40> part{};
};

/// Of all ranks.
std::vector<Need> needs(kernels::Communicator& ranks, Bytes of_this_rank, const std::string& part) {
  Need mine{.host = {}, .bytes = of_this_rank.value};
  part.copy(mine.part.data(), mine.part.size() - 1);
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Need> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

Bytes needed_on_server(kernels::Communicator& ranks, Bytes of_this_rank, const std::string& part) {
  const std::vector<Need> all = needs(ranks, of_this_rank, part);
  const Need& mine = all[static_cast<std::size_t>(ranks.rank())];
  Bytes sum;
  for (const Need& need : all) {
    if (need.host == mine.host && need.part == mine.part) sum += Bytes{need.bytes};
  }
  return sum;
}

int rank_on_server(kernels::Communicator& ranks) {
  const std::vector<Need> all = needs(ranks, {}, "");
  const auto me = static_cast<std::size_t>(ranks.rank());
  int before = 0;
  for (std::size_t rank = 0; rank < me; ++rank) before += all[rank].host == all[me].host ? 1 : 0;
  return before;
}

}  // namespace stratagem::commands
