// The processors of servers, as far as they matter between GPUs.
#pragma once

#include <cstdint>

#include "base/quantity.hpp"

namespace stratagem::topology {

/// The family of a server's processors: communication libraries go by it where they judge the links
/// between sockets and the cost of the network.
enum class Processor : std::uint8_t {
  unknown,
  intel_broadwell,
  intel_skylake,
  intel_sapphire_rapids,
  intel_emerald_rapids,
  amd
};

/// What NCCL counts on in one direction between two such processors of a server (topo.h of 2.28.9).
/// Of POWER and ARM, which it tells apart and we do not: what it takes for unknown ones.
BytesPerSecond nccl_socket_rate(Processor processor);

}  // namespace stratagem::topology
