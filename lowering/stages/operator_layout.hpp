// The grid of a stage, and what each operator does along its axes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/grid.hpp"
#include "placement/layout.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// The grid on which all operators of a copy of a stage stand in equal parts; nullopt if there is
/// none.
std::optional<placement::Grid> grid_of(const strategies::Plan& plan,
                                       const std::vector<int>& segments, int copy);

/// What an operator splits along every axis of its grid: an identifier of its annotation, or ""
/// where it is replicated. An axis of one rank counts as replicated, since there is nobody to
/// communicate with. A backward operator or optimizer step splits what its forward operator splits.
std::vector<std::string> split_along(const strategies::Plan& plan, const placement::Grid& grid,
                                     model::OpId op);

/// The layout in which an operator reads its i-th input or leaves its i-th output. An output is
/// partial along an axis that splits one of the operator's reductions.
placement::Layout input_layout(const model::Operator& op, std::size_t i,
                               const std::vector<std::string>& split);
placement::Layout output_layout(const model::Operator& op, std::size_t i,
                                const std::vector<std::string>& split);

}  // namespace stratagem::lowering
