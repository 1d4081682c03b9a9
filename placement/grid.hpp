// The devices of one stage as a grid of axes.
#pragma once

#include <string>
#include <vector>

namespace stratagem::placement {

/// Devices in a row: the one with coordinate i stands i * stride devices after the first.
struct Axis {
  std::string name;
  int size = 1;
  int stride = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Coordinates of the i-th place in a grid of these sizes, the last axis fastest.
std::vector<int> coordinates_in(const std::vector<int>& sizes, int i);

/// Devices first + sum of coordinate * stride; axes from the largest stride to the smallest. Of an
/// irregular stage one axis, along which the devices are those listed.
struct Grid {
  int first_device = 0;
  std::vector<Axis> axes;
  std::vector<int> listed;
  friend bool operator==(const Grid&, const Grid&) = default;

  [[nodiscard]] std::vector<int> sizes() const;
  [[nodiscard]] int count() const;
  /// Coordinates of the i-th device, the last axis fastest.
  [[nodiscard]] std::vector<int> coordinates(int i) const { return coordinates_in(sizes(), i); }
  [[nodiscard]] int device(const std::vector<int>& coordinates) const;
  /// The i of a device of the grid.
  [[nodiscard]] int position(int device) const;
  /// Of all devices, ascending.
  [[nodiscard]] std::vector<int> devices() const;
};

}  // namespace stratagem::placement
