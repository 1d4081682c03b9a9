// How a tensor lies where it crosses from one segment to another.
#pragma once

#include <optional>
#include <vector>

#include "placement/distribution.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// The distribution of a tensor on any copy of a stage, and its memory category: a layout, or, if
/// the stage lists its devices, what each of them holds, if anything, by position.
struct Border {
  placement::Layout layout;
  program::Category category = program::Category::temporaries;
  std::vector<std::optional<placement::Mask>> masks = {};
};

Border border_of(const placement::Distribution& distribution, const placement::Grid& grid,
                 program::Category category);
/// On the copy that stands on `grid`.
placement::Distribution distribution_at(const Border& border, const placement::Grid& grid);

}  // namespace stratagem::lowering
