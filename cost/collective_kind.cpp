// The names of kinds of collectives.
#include "cost/collective_kind.hpp"

#include <array>
#include <cstddef>

namespace stratagem::cost {

std::string to_text(CollectiveKind kind) {
  constexpr std::array names = {"all_reduce",    "all_gather", "reduce_scatter", "all_to_all",
                                "broadcast",     "send",       "reduce",         "ring_exchange",
                                "ring_messages", "to_host",    "from_host",      "to_drives",
                                "from_drives"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace stratagem::cost
