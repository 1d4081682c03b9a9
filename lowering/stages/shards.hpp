// Which axes of a grid divide a weight into shards, and how large a shard is.
#pragma once

#include <string>
#include <vector>

#include "cost/stack.hpp"
#include "placement/grid.hpp"
#include "placement/layout.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// The axes of a grid that divide what belongs to a weight with this layout in a gap between its
/// uses: those that the plan names, along which the weight is not divided already and there is more
/// than one rank. Axes that divide more of parameters, gradients and states come first, so that
/// parts of what is divided over more axes make up a part of what is divided over fewer.
std::vector<int> shard_axes(
    const strategies::Plan& plan, const placement::Grid& grid, const placement::Layout& layout,
    strategies::Keep::What what,
    strategies::Keep::Between gap = strategies::Keep::Between::micro_batches);

/// The elements of `axes` that are in `others`, or are not.
std::vector<int> common(std::vector<int> axes, const std::vector<int>& others);
std::vector<int> without(std::vector<int> axes, const std::vector<int>& others);

/// Is a parameter gathered for segments that read it? `axes` divide it before. Without axes it is
/// gathered if the plan has gathers and the framework gathers even on one rank.
bool is_gathered(const strategies::Plan& plan, const cost::Stack& stack,
                 const std::vector<int>& axes);

/// Are weights of which every rank steps a shard gathered in the next iteration, each before its
/// first use, rather than all after the steps?
bool gathers_before_first_use(const strategies::Plan& plan);

/// Do parameters wait otherwise between the passes of a micro-batch than between micro-batches?
bool kept_for_passes(const strategies::Plan& plan);

/// The plan's `ahead` for parameters: how many segments ahead of their reader they are gathered.
int ahead_of(const strategies::Plan& plan);

/// Does the plan leave a parameter whole because of its size, where it would divide it otherwise?
/// `whole`: as every device holds it then.
bool stays_whole(const strategies::Plan& plan, const model::Tensor& tensor, Bytes whole);

/// Bytes of the largest of the shards into which `axes` divide what every device of a grid would
/// hold of a tensor: whole elements, the last shard filled up to the size of the others.
Bytes shard_bytes(const model::Tensor& tensor, Bytes whole, const placement::Grid& grid,
                  const std::vector<int>& axes);

/// How many devices of a grid differ along these axes alone.
int ranks_along(const placement::Grid& grid, const std::vector<int>& axes);

/// "data, context".
std::string axis_names(const placement::Grid& grid, const std::vector<int>& axes);

}  // namespace stratagem::lowering
