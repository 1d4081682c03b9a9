// All-gathers of weights of which devices keep shards.
#pragma once

#include <map>
#include <string>

#include "strategies/lower/parameters.hpp"

namespace stratagem::strategies {

/// One task for all weights that are gathered by the same devices.
class GatherTasks {
 public:
  /// Groups of another `purpose` are others (Groups::along). Tasks are named after `name`.
  GatherTasks(Groups& groups, std::string name, Stream stream, int purpose);

  /// The task that gathers a weight: its payload has grown by that, and its operation by operands
  /// whose tensors and slots are to be filled in.
  Task& add(const LocalHolding& local);
  /// Appends them to a block, by group: in one order on all hosts.
  void append_to(Block& block);

 private:
  Groups& groups_;
  std::string name_;
  Stream stream_;
  int purpose_;
  std::map<int, Task> tasks_;  ///< by group
};

}  // namespace stratagem::strategies
