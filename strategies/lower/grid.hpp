// The grid of a stage, what each operator does along its axes, and the groups along them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategies/grid.hpp"
#include "strategies/layout.hpp"
#include "strategies/plan.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// The grid on which all operators of a copy of a stage stand in equal parts; nullopt if there is
/// none.
std::optional<Grid> grid_of(const Plan& plan, const std::vector<int>& segments, int copy);

/// What an operator splits along every axis of its grid: an identifier of its annotation, or ""
/// where it is replicated. An axis of one rank counts as replicated, since there is nobody to
/// communicate with. A backward operator or optimizer step splits what its forward operator splits.
std::vector<std::string> split_along(const Plan& plan, const Grid& grid, model::OpId op);

/// The layout in which an operator reads its i-th input or leaves its i-th output. An output is
/// partial along an axis that splits one of the operator's reductions.
Layout input_layout(const model::Operator& op, std::size_t i,
                    const std::vector<std::string>& split);
Layout output_layout(const model::Operator& op, std::size_t i,
                     const std::vector<std::string>& split);

/// The layout in which devices along an axis that held the same hold parts: of the first dimension
/// that can be divided; nullopt if none can.
std::optional<Layout> divided(Layout layout, std::size_t axis, const model::Tensor& tensor,
                              const Grid& grid);

/// The shape of the part that each device holds; throws InputError if the tensor does not divide
/// evenly.
std::vector<std::int64_t> local_shape(const model::Tensor& tensor, const Layout& layout,
                                      const Grid& grid);
/// Its bytes.
Bytes local_bytes(const model::Tensor& tensor, const Layout& layout, const Grid& grid);

/// Assigns group numbers for tasks to name, and binds them to communicators on every device. Grids
/// with equal axes share their groups, so their blocks can be equal.
class Groups {
 public:
  /// The program has all its devices already.
  Groups(Program& program, std::vector<Grid> grids);

  /// The group of all devices of the grid that differ only along the given axes (ascending
  /// indices). It is also bound on every grid that is this one translated by whole grids. Calls
  /// with another `purpose` get another group.
  int along(const Grid& grid, const std::vector<int>& axes, int purpose = 0);
  /// Devices with equal coordinates on several grids, in the order of the grids; for transfers
  /// {source, destination}. Calls with another `purpose` get another group.
  int across(const std::vector<Grid>& grids, int purpose);
  /// A group that is these lists of ranks, of which no device is in two. Calls with another
  /// `purpose` get another group.
  int of(const std::vector<std::vector<int>>& ranks, int purpose = -1);
  /// Every device by itself.
  int alone();
  /// Equal for grids on which `along` gives the same groups.
  int family(const Grid& grid) const;

 private:
  int new_group();
  void bind(int group, const std::vector<int>& ranks);
  void bind_along(int group, const Grid& grid, const std::vector<int>& axes);

  Program& program_;
  std::vector<Grid> grids_;                ///< distinct
  std::vector<int> family_;                ///< by grid
  std::map<std::vector<int>, int> known_;  ///< by a description of the group
  int count_ = 0;
};

}  // namespace stratagem::strategies
