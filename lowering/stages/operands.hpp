// The devices of a stage, and how the operands of an operator are distributed over them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/distribution.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// The grid on which all operators of a copy of a stage stand in equal parts; nullopt if there is
/// none.
std::optional<placement::Grid> grid_of(const strategies::Plan& plan,
                                       const std::vector<int>& segments, int copy);

/// The devices of all forward operators of some segments, ascending: those of an irregular stage.
/// The devices of another copy are in the order of the devices of copy 0 whose parts they have;
/// throws InputError if the copies do not correspond.
std::vector<int> devices_of(const strategies::Plan& plan, const std::vector<int>& segments,
                            int copy);

/// What an operator splits along one axis of its grid: an identifier of its annotation, or "" where
/// it is replicated; and whether these are parts of the parts that other axes make.
struct SplitAlong {
  std::string dim;
  bool inner = false;
};

/// Along every axis. An axis of one rank counts as replicated, since there is nobody to communicate
/// with. A backward operator or optimizer step splits what its forward operator splits.
std::vector<SplitAlong> split_along(const strategies::Plan& plan, const placement::Grid& grid,
                                    model::OpId op);

/// The layout in which an operator reads its i-th input or leaves its i-th output. An output is
/// partial along an axis that splits one of the operator's reductions.
placement::Layout input_layout(const model::Operator& op, std::size_t i,
                               const std::vector<SplitAlong>& split);
placement::Layout output_layout(const model::Operator& op, std::size_t i,
                                const std::vector<SplitAlong>& split);

/// By input and by output; the entries of each are in the order of the operator's parts.
struct Operands {
  std::vector<placement::Distribution> reads;
  std::vector<placement::Distribution> leaves;
};

/// As a copy of its stage on `grid` runs it. Of a grid of axes layouts, of one that lists its
/// devices masks.
Operands operands_of(const strategies::Plan& plan, const placement::Grid& grid, int copy,
                     model::OpId op);

/// How the first of `ops` that reads a tensor reads it; the whole tensor on every device if none
/// does.
placement::Distribution first_reading(const strategies::Plan& plan, const placement::Grid& grid,
                                      int copy, const std::vector<model::OpId>& ops,
                                      model::TensorId tensor);

/// The same for operators that plans divide and place alike on a grid, or on lists of devices.
std::string division_key(const strategies::Plan& plan, const placement::Grid& grid, model::OpId op);

}  // namespace stratagem::lowering
