// Which axes of a grid divide a weight into shards, and how large a shard is.
#pragma once

#include <string>
#include <vector>

#include "cost/stack.hpp"
#include "strategies/lower/grid.hpp"

namespace stratagem::strategies {

/// Of a grid, ascending: the axes that divide what belongs to a weight which lies on it as `layout`
/// says; those of the plan's shards along which the weight is neither divided nor alone. Empty unless
/// the plan divides `what`.
std::vector<int> shard_axes(const Plan& plan, const Grid& grid, const Layout& layout,
                            WeightShards::Of what);

/// Is a parameter which `axes` divide, or none, gathered for each pass of a segment that reads it? One
/// that none divides is where the plan has gathers and the framework gathers by one rank, too.
bool is_gathered(const Plan& plan, const cost::Stack& stack, const std::vector<int>& axes);

/// Is a parameter one that the plan leaves whole for its size, where it would divide it otherwise? `whole`
/// as every device holds it then.
bool stays_whole(const Plan& plan, const model::Tensor& tensor, Bytes whole);

/// Bytes of the largest of the shards into which `axes` divide what every device of a grid would hold
/// of a tensor: whole elements, the last shard filled up to the size of the others.
Bytes shard_bytes(const model::Tensor& tensor, Bytes whole, const Grid& grid,
                  const std::vector<int>& axes);

/// How many devices of a grid differ along these axes alone.
int ranks_along(const Grid& grid, const std::vector<int>& axes);

/// "data, context".
std::string axis_names(const Grid& grid, const std::vector<int>& axes);

}  // namespace stratagem::strategies
