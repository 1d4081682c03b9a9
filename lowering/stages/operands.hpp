// How the operands of an operator are distributed where it runs.
#pragma once

#include <vector>

#include "placement/distribution.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

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

}  // namespace stratagem::lowering
