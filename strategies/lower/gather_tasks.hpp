// All-gathers of weights of which devices keep shards.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "cost/stack.hpp"
#include "strategies/lower/parameters.hpp"

namespace stratagem::strategies {

/// One gather for all weights that are gathered by the same devices, one for as many as a framework
/// gathers at once, or one for each weight.
class GatherTasks {
 public:
  /// Groups of another `purpose` are others (Groups::along). Tasks are named after `name`.
  GatherTasks(Groups& groups, std::string name, Stream stream, int purpose,
              const cost::ShardCollectives& facts);
  /// Of what ranks have stepped.
  GatherTasks(Groups& groups, std::string name, Stream stream, const cost::StepGathers& facts);

  /// The task that gathers a weight: its payload has grown by that, and its operation by operands
  /// whose tensors and slots are to be filled in.
  Task& add(const LocalHolding& local);
  /// Appends them to a block, in one order on all hosts, with what the framework does beside them.
  void append_to(Block& block);

 private:
  struct Gather {
    Task task;
    int ranks = 1;
  };

  /// Which gather of a group takes the next weight.
  int next_of(int group);

  Groups& groups_;
  std::string name_;
  Stream stream_;
  int purpose_;
  cost::ShardCollectives facts_;
  Bytes at_once_;
  std::map<int, int> last_;                        ///< gather of a group
  std::map<std::pair<int, int>, Gather> gathers_;  ///< by group, and which one of it
};

}  // namespace stratagem::strategies
