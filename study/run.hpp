// A run of a scenario with all that it is made of, and what it is compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "cost/optimizer.hpp"
#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "model/graph.hpp"
#include "strategies/parallel/options.hpp"
#include "topology/cluster.hpp"

namespace stratagem::study {

/// A figure that somebody measured or printed for a run, to be shown beside the prediction.
struct Measured {
  std::string name;        ///< one of figure_names
  double value = 0;        ///< s, TFLOP/s, a fraction, a ratio, bytes; 1 or 0 where it fits or not
  bool gates = true;       ///< false where it is from memory: shown, never judged
  std::string provenance;  ///< "published", "measured" (by us) or "from memory"
  std::string source;
  bool fitted = false;             ///< a scalar of the stack was fitted to it: no prediction
  std::optional<int> device = {};  ///< of memory, on which it was measured; none: on the fullest
};

/// A bound that the prediction must keep, else the command fails.
struct Expectation {
  std::string name;  ///< as Measured::name, or "fits"
  double at_least = 0;
  double at_most = 0;
  std::string because;
};

/// A key that an option of the command line set.
struct SetKey {
  std::string path;    ///< JSON pointer within the run: "/strategy/zero"
  std::string option;  ///< "--set zero=3"
};

/// Where a run was read.
struct Origin {
  std::string file;                ///< the scenario's
  std::string path;                ///< JSON pointer of the run: "/runs/0"
  std::vector<std::string> files;  ///< all that it was read from
  std::vector<SetKey> set = {};    ///< over what the file says
};

/// How the samples of an iteration are divided.
struct Batch {
  int global = 0;
  int micro = 0;  ///< samples per micro-batch and rank among which the batch is divided
  int ranks = 1;  ///< among which it is divided
  int micro_batches = 1;
  std::int64_t sequence = 0;  ///< tokens of a sample
};

/// What a run is compared with.
struct Comparison {
  std::string baseline;  ///< the run that efficiency and speedup are relative to; empty: none
  std::string group;     ///< heading of the table it is printed under
  std::string assumed;   ///< what the run assumes about the experiment, in words; empty: nothing
  std::vector<std::string> remarks;  ///< what else is assumed, as the program finds it
  std::vector<Measured> measured;
  std::vector<Expectation> expect;

  /// `assumed` and `remarks`, with "; " between them.
  [[nodiscard]] std::string all_assumed() const {
    std::string text = assumed;
    for (const std::string& one : remarks) text += (text.empty() ? "" : "; ") + one;
    return text;
  }
};

/// One run, with the scenario's defaults filled in.
struct Run {
  Origin origin;
  std::string name;
  Comparison compared = {};
  std::shared_ptr<const model::Graph> graph;  ///< of a micro-batch; runs may share it
  topology::Cluster cluster;
  cost::Profile profile;
  cost::Stack stack;
  strategies::Options options;
  JsonReader strategy;
  std::optional<JsonReader> plan;  ///< the file of a plan that stands in for a strategy
  int gpus = 1;
  Batch batch = {};
  cost::Training training;
  Json resolved;  ///< every setting, after defaults
  /// Why its settings cannot go together; empty if they can. Otherwise what follows from them is
  /// not set (`gpus` is 0 if the cluster is refused), and it has no plan.
  std::optional<InputError> refused = {};
};

struct Scenario {
  std::string file;
  std::string question;
  std::vector<Run> runs;
  std::optional<JsonReader> workflows = {};  ///< of these runs (study/workflow/)
};

}  // namespace stratagem::study
