// A collective on values: what a group has of some tensors becomes what it is to have.
#pragma once

#include <functional>
#include <vector>

#include "execute/value.hpp"
#include "kernels/communicator.hpp"
#include "strategies/program.hpp"

namespace stratagem::execute {

/// Some tensors that a group exchanges at once; members count as in the communicator.
template <typename T>
struct Exchange {
  std::vector<Shared<T>> inputs;  ///< this member's, by tensor
  /// What a member has of a tensor before and after. Of sums over a whole group only this member is
  /// asked for.
  std::function<Region(std::size_t tensor, int member)> before, after;
};

/// What this member has afterwards, by tensor. All tensors travel in one message: parts are padded
/// to
/// equal lengths. Throws BrokenPromise for a kind of collective that is none of the four
/// conversions,
/// kernels::CommunicationError where ranks cannot meet.
template <typename T>
std::vector<Shared<T>> run(const strategies::Collective& work, const Exchange<T>& exchange,
                           kernels::Communicator& group);

}  // namespace stratagem::execute
