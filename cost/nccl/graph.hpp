// What the search finds for one algorithm on one server: channels, their speeds and their orders.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.hpp"
#include "cost/nccl/paths.hpp"

namespace stratagem::cost::nccl {

/// What a channel looks like within a server.
enum class Pattern : std::uint8_t {
  ring,           ///< a cycle over all GPUs, or a path from one adapter to another
  balanced_tree,  ///< a path over all GPUs; the first two share what goes to the adapter
  tree,           ///< a path over all GPUs; all that goes to the adapter leaves from the first
  nvls            ///< every GPU to and from the switch, with one GPU as its head
};

/// GPUs are places in Server::gpus. With several servers the channel comes in at `nic_in` and
/// leaves at `nic_out`; adapters are -1 within one server.
struct Channel {
  std::vector<int> gpus;
  int nic_in = -1;
  int nic_out = -1;
};

/// `channels.size()` channels of the given speed each; none where the hardware cannot reduce in the
/// switch.
struct Graph {
  Pattern pattern = Pattern::ring;
  std::vector<Channel> channels;
  BytesPerSecond intra;  ///< of each channel, within the server
  BytesPerSecond inter;  ///< of each channel, through adapters; as `intra` within one server
  PathType type_intra = PathType::nvlink;       ///< the farthest path between GPUs that was allowed
  PathType type_inter = PathType::pcie_switch;  ///< the same to adapters
  bool same_order = false;                      ///< were all channels to have the same order?

  [[nodiscard]] int count() const { return static_cast<int>(channels.size()); }
};

}  // namespace stratagem::cost::nccl
