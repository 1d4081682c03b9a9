// How fast devices reach each other, and what each has room for: for the choice of peers.
#pragma once

#include <functional>
#include <optional>

#include "base/quantity.hpp"

namespace stratagem::lowering {

/// Without a cluster all devices are equally fast to reach and have room for all that is lent.
struct Neighbours {
  std::function<BytesPerSecond(int from, int to)> link = {};
  std::optional<Bytes> memory = {};  ///< of each device, for buffers
};

}  // namespace stratagem::lowering
