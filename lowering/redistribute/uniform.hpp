// Steps between uniform layouts, within one group of devices or from one to another.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/redistribute/aligned_grid.hpp"

namespace stratagem::lowering {

/// A conversion that communicates is one collective in every group of devices that differ only
/// along its axes, ranks in the order of the grid; any other is a select on every device.
std::vector<Step> within_group(const AlignedGrid& grid, const std::vector<std::int64_t>& shape,
                               placement::Layout from,
                               const std::vector<placement::Conversion>& conversions);

/// From one uniform group of devices to another one that shares no device with it. The cheapest of:
/// conversions among the producers, sends to the consumers, conversions among these. What is sent
/// at once (cover.hpp finds the sends) changes at most one of the numbers of replicas, of partial
/// values, and of parts of each dimension. It costs 1 + 24 times, from N elements on each producer
/// to n on each consumer,
///   r times as many replicas: rN; fewer, or nothing changes: N
///   k times as many parts of a dimension: N; k times fewer: n
///   k times as many partial values (nnScaler's cost; the zeros are not sent here), or k times
///   fewer: kN
/// where 24 is nnScaler's ratio of bandwidths (NVLink at 300 GB/s, InfiniBand at 100 Gbit/s).
/// Source: nnScaler, graph/gener/rvd/inter.py.
std::vector<Step> across_groups(const AlignedGrid& producers, const AlignedGrid& consumers,
                                const std::vector<std::int64_t>& shape);

}  // namespace stratagem::lowering
