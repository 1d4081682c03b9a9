// All-gathers of weights of which devices keep shards.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "cost/stack.hpp"
#include "lowering/weights/parameters.hpp"

namespace stratagem::lowering {

/// One gather for all weights that the same devices gather, or one for each weight, or one for as
/// many weights as fill a bucket.
class GatherTasks {
 public:
  /// Groups of another `purpose` are others (Groups::along). Tasks are named after `name`.
  GatherTasks(Groups& groups, std::string name, program::Stream stream, int purpose,
              const cost::ShardCollectives& facts);
  /// Gathers of weights that ranks have stepped.
  GatherTasks(Groups& groups, std::string name, program::Stream stream, int purpose,
              const cost::StepGathers& facts);

  /// Adds a weight to the task that gathers it from parts, into the whole or into larger parts
  /// (`to`), and returns the task: its payload and its operation's operands have grown. The caller
  /// fills in the operands' tensors and slots.
  program::Task& add(const LocalHolding& local, const Division& from, const Division* to);
  /// Appends them to a block, in one order on all devices, with what the framework does beside
  /// them.
  void append_to(program::Block& block);

 private:
  struct Gather {
    program::Task task;
    int ranks = 1;
  };

  /// Joins the gathers of a group into as many as buckets fit into all of its weights, of similar
  /// size and of whole weights.
  void join();

  Groups& groups_;
  std::string name_;
  program::Stream stream_;
  int purpose_;
  cost::ShardCollectives facts_;
  Bytes bucket_;  ///< 0: what there is by group and weight stays as it is
  int weights_ = 0;
  std::map<std::pair<int, int>, Gather> gathers_;  ///< by group, and weight if each has its own
};

}  // namespace stratagem::lowering
