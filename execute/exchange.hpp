// Executes a collective on values: redistributes some tensors within a group.
#pragma once

#include <functional>
#include <vector>

#include "execute/engine.hpp"
#include "execute/post.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// Some tensors that a group exchanges at once; members count as in the communicator.
template <typename T>
struct Exchange {
  std::vector<Shared<T>> inputs;   ///< this member's, by tensor
  std::vector<Shared<T>> outputs;  ///< what it has afterwards; may lie where an input does
  bool adds = false;               ///< to what outputs hold already
  /// What a member has of a tensor before and after. Of sums over a whole group only this member is
  /// asked for.
  std::function<Region(std::size_t tensor, int member)> before, after;
};

/// Writes what this member has afterwards. Large tensors that lie as a message does travel alone,
/// the others in one message, in which parts are padded to equal lengths. Throws BrokenPromise for
/// a kind of collective that is none of the four conversions, kernels::CommunicationError where
/// ranks cannot meet.
template <typename T>
void run(Engine<T>& engine, const program::Collective& work, const Exchange<T>& exchange,
         Post<T>& post);

}  // namespace stratagem::execute
