// Shares out GPUs by what they say of themselves, not by numbers, which launchers change.
#include "kernels/ranks/own_gpu.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "base/input_error.hpp"
#include "kernels/device.hpp"

namespace stratagem::kernels {
namespace {

constexpr std::size_t most = 64;  ///< GPUs of a host

/// As bytes that travel.
struct Seen {
  std::array<char, 256> host{};
  std::array<std::array<char, 40>, most> ids{};
  int gpus = 0;
};

}  // namespace

std::vector<VisibleGpus> visible_gpus(Communicator& ranks) {
  Seen mine;
  if (gethostname(mine.host.data(), mine.host.size() - 1) != 0) mine.host[0] = '\0';
  for (const Device& device : devices()) {
    if (static_cast<std::size_t>(mine.gpus) == most) break;
    auto& place = mine.ids[static_cast<std::size_t>(mine.gpus++)];
    std::memcpy(place.data(), device.id.data(), std::min(device.id.size(), place.size() - 1));
  }
  std::vector<Seen> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  std::vector<VisibleGpus> result;
  for (const Seen& one : all) {
    VisibleGpus& seen = result.emplace_back(VisibleGpus{.host = one.host.data(), .ids = {}});
    for (int i = 0; i < one.gpus; ++i)
      seen.ids.emplace_back(one.ids[static_cast<std::size_t>(i)].data());
  }
  return result;
}

std::vector<int> gpus_of_ranks(const std::vector<VisibleGpus>& ranks) {
  std::map<std::string, std::set<std::string>> taken;
  std::vector<int> result;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const VisibleGpus& seen = ranks[rank];
    std::set<std::string>& of_host = taken[seen.host];
    const auto free = std::ranges::find_if(
        seen.ids, [&](const std::string& id) { return !of_host.contains(id); });
    if (free == seen.ids.end()) {
      const auto there =
          std::ranges::count_if(ranks, [&](const VisibleGpus& r) { return r.host == seen.host; });
      throw InputError("", "rank " + std::to_string(rank), "a GPU of its own on " + seen.host,
                       std::to_string(there) + " ranks there, and " +
                           (seen.ids.empty() ? "no GPU that this one sees"
                                             : std::to_string(seen.ids.size()) +
                                                   " GPUs that this one sees, all taken"));
    }
    of_host.insert(*free);
    result.push_back(static_cast<int>(free - seen.ids.begin()));
  }
  return result;
}

}  // namespace stratagem::kernels
