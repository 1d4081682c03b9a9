// One call of a collective, whatever the memory that its buffers are in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "cost/ring.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::calibrate {

/// Those that are measured of ranks.
inline constexpr std::array measured_collectives{cost::CollectiveKind::all_reduce,
                                                 cost::CollectiveKind::all_gather,
                                                 cost::CollectiveKind::reduce_scatter,
                                                 cost::CollectiveKind::all_to_all,
                                                 cost::CollectiveKind::broadcast,
                                                 cost::CollectiveKind::reduce,
                                                 cost::CollectiveKind::send};

/// A collective of fp32, `elements` in all (a payload of cost/ring.hpp), of a group that this rank
/// is in. `Group` has the operations of kernels::Communicator; `buffers.next(n)` deals a span of n
/// elements in the memory that it wants; `send(buffer)` is what counts as a send.
template <typename Group, typename Buffers, typename Send>
void call_collective(cost::CollectiveKind kind, Group& group, std::size_t elements,
                     Buffers& buffers, const Send& send) {
  using cost::CollectiveKind;
  const auto n = static_cast<std::size_t>(group.size());
  const std::size_t part = std::max<std::size_t>(1, elements / n);
  constexpr auto sum = kernels::Reduction::sum;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return group.template all_reduce<float>(sum, buffers.next(elements));
    case CollectiveKind::all_gather: {
      const auto mine = buffers.next(part);
      return group.template all_gather<float>(mine, buffers.next(n * part));
    }
    case CollectiveKind::reduce_scatter: {
      const auto whole = buffers.next(n * part);
      return group.template reduce_scatter<float>(sum, whole, buffers.next(part));
    }
    case CollectiveKind::all_to_all: {
      const auto out = buffers.next(n * part);
      return group.template all_to_all<float>(out, buffers.next(n * part));
    }
    case CollectiveKind::broadcast:
      return group.template broadcast<float>(0, buffers.next(elements));
    case CollectiveKind::reduce:
      return group.template reduce<float>(sum, 0, buffers.next(elements));
    default:
      return send(elements);
  }
}

}  // namespace stratagem::calibrate
