// Devices from coordinates and back.
#include "placement/grid.hpp"

#include <algorithm>
#include <numeric>

#include "base/input_error.hpp"

namespace stratagem::placement {

std::vector<int> Grid::sizes() const {
  std::vector<int> result;
  for (const Axis& axis : axes) result.push_back(axis.size);
  return result;
}

int Grid::count() const {
  return std::accumulate(axes.begin(), axes.end(), 1,
                         [](int n, const Axis& axis) { return n * axis.size; });
}

std::vector<int> coordinates_in(const std::vector<int>& sizes, int i) {
  std::vector<int> at(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0; i /= sizes[axis]) at[axis] = i % sizes[axis];
  return at;
}

int Grid::device(const std::vector<int>& coordinates) const {
  if (!listed.empty()) return listed[coordinates.front()];
  int device = first_device;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    device += coordinates[axis] * axes[axis].stride;
  return device;
}

int Grid::position(int wanted) const {
  int i = 0;
  while (i < count() && device(coordinates(i)) != wanted) ++i;
  expects(i < count(), "a device stands on the grid that it is looked for on");
  return i;
}

std::vector<int> Grid::devices() const {
  std::vector<int> devices;
  devices.reserve(count());
  for (int i = 0; i < count(); ++i) devices.push_back(device(coordinates(i)));
  std::ranges::sort(devices);
  return devices;
}

}  // namespace stratagem::placement
