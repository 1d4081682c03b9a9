// Short names for what an axis does to a matrix.
#pragma once

#include "placement/layout.hpp"

namespace stratagem::placement {

inline constexpr AxisRole R{AxisRole::replica};
inline constexpr AxisRole V{AxisRole::partial};
inline constexpr AxisRole rows{0};
inline constexpr AxisRole columns{1};
inline constexpr AxisRole inner_rows{.dim = 0, .inner = true};
inline constexpr AxisRole inner_columns{.dim = 1, .inner = true};

}  // namespace stratagem::placement
