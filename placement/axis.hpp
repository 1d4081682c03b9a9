// Devices in a row: one coordinate of a grid.
#pragma once

#include <string>

namespace stratagem::placement {

/// Devices in a row: the one with coordinate i stands i * stride devices after the first.
struct Axis {
  std::string name;
  int size = 1;
  int stride = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

}  // namespace stratagem::placement
