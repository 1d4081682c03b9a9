// Cuts attention into a part for every rank that divides its keys, and runs the parts beside the
// messages that bring them.
#pragma once

#include <vector>

#include "lowering/blocks/rewriting.hpp"

namespace stratagem::lowering {

/// One pass of an attention among n ranks that divide its tokens: places among a block's tasks.
struct Ring {
  int ranks = 2;
  std::vector<int> gathers;   ///< of keys and of values
  std::vector<int> kernels;   ///< that read both
  std::vector<int> scatters;  ///< of the gradients of keys and values

  [[nodiscard]] std::vector<int> all() const {
    std::vector<int> tasks = gathers;
    tasks.insert(tasks.end(), kernels.begin(), kernels.end());
    tasks.insert(tasks.end(), scatters.begin(), scatters.end());
    return tasks;
  }
};

/// Writes the tasks of a ring anew, as Transformer Engine has them (d0067d0d, pytorch/attention/
/// dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P). Behind a causal mask each
/// rank has two chunks of tokens, from opposite ends of the sequence, so that all parts have equal
/// work: that on a rank's own keys is causal, and in any other all queries see half of the keys (on
/// some ranks half of the queries see all). Of these the former are counted everywhere.
///   forward pass: n parts on two streams, and n - 1 messages, each beside the part before that
///     which waits for it. All keys and values, and the results of all parts, live until these are
///     weighed and added up in the end.
///   backward pass: n parts, one after another, each beside a message. The first n - 1 messages
///     bring keys and values, the last n - 1 the gradients that ranks before have added up. Two
///     buffers hold them. A rank adds what its part gives when the message has come.
/// The framework launches the first part of each kernel and the messages; all else follows within
/// the same call. The last task of a ring has what the whole tasks did to values. All others count
/// for time and memory. Before: waits and uses are noted; buffers are not yet allocated and freed.
Moved run_in_rings(program::Block& block, const std::vector<Ring>& rings);

}  // namespace stratagem::lowering
