// Kinds of collectives and copies, and what carries them.
#pragma once

#include <cstdint>
#include <string>

namespace stratagem::cost {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send,
  reduce,
  ring_exchange,  ///< every rank sends to the next one of a ring, over copy engines
  ring_messages,  ///< the same as messages of NCCL
  to_host,        ///< of one GPU: a copy to pinned memory of its host
  from_host,      ///< and back
  to_drives,      ///< of one GPU's share: written from that memory to the server's drives
  from_drives
};
std::string to_text(CollectiveKind);

/// Between the host and its drives.
constexpr bool concerns_drives(CollectiveKind kind) {
  return kind == CollectiveKind::to_drives || kind == CollectiveKind::from_drives;
}

/// Copies between device and host, or beyond it.
constexpr bool concerns_host(CollectiveKind kind) {
  return kind == CollectiveKind::to_host || kind == CollectiveKind::from_host ||
         concerns_drives(kind);
}

/// Do kernels of the device carry it, which take multiprocessors from others? Copy engines carry
/// what is no such collective.
constexpr bool takes_multiprocessors(CollectiveKind kind) {
  return !concerns_host(kind) && kind != CollectiveKind::ring_exchange;
}

/// Is it one step, in which ranks send directly to others? NCCL predicts no such collective.
constexpr bool takes_one_step(CollectiveKind kind) {
  return kind == CollectiveKind::send || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::ring_exchange || kind == CollectiveKind::ring_messages;
}

/// The kind whose measured times a collective takes (Profile: times): itself, or a send where every
/// rank sends and receives once.
constexpr CollectiveKind timed_as(CollectiveKind kind) {
  const bool ring = kind == CollectiveKind::ring_exchange || kind == CollectiveKind::ring_messages;
  return ring ? CollectiveKind::send : kind;
}

}  // namespace stratagem::cost
