// Groups of devices by number, and the communicators that they are.
#pragma once

#include <map>
#include <vector>

#include "placement/grid.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Assigns group numbers for tasks to name, and binds them to communicators on every device. Grids
/// with equal axes share their groups, so their blocks can be equal.
class Groups {
 public:
  /// The program has all its devices and grids already. Of grids that list their devices there are
  /// only groups of lists (`of`).
  explicit Groups(program::Program& program);

  /// The group of all devices of the grid that differ only along the given axes (ascending
  /// indices). It is also bound on every grid that is this one translated by whole grids. Calls
  /// with another `purpose` get another group.
  int along(const placement::Grid& grid, const std::vector<int>& axes, int purpose = 0);
  /// Devices with equal coordinates on several grids, in the order of the grids; for transfers
  /// {source, destination}. Calls with another `purpose` get another group.
  int across(const std::vector<placement::Grid>& grids, int purpose);
  /// A group that is these lists of ranks, of which no device is in two. Calls with another
  /// `purpose` get another group.
  int of(const std::vector<std::vector<int>>& ranks, int purpose = -1);
  /// Every device by itself.
  int alone();
  /// The ranks of a communicator that a group is.
  [[nodiscard]] int ranks_in(int group) const;
  /// Equal for grids on which `along` gives the same groups.
  int family(const placement::Grid& grid) const;

 private:
  int new_group();
  void bind(int group, const std::vector<int>& ranks);
  void bind_along(int group, const placement::Grid& grid, const std::vector<int>& axes);

  program::Program& program_;
  std::vector<placement::Grid> grids_;     ///< distinct
  std::vector<int> family_;                ///< by grid
  std::map<std::vector<int>, int> known_;  ///< by a description of the group
  int count_ = 0;
};

}  // namespace stratagem::lowering
