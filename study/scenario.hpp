// Reads a scenario file into the runs to compare.
#pragma once

#include <map>
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
#include "study/changes.hpp"
#include "topology/cluster.hpp"

namespace stratagem::study {

/// The figures that can be measured of a run. Each is predicted for every run (see compare in
/// results.hpp).
inline const std::vector<std::string> figure_names = {
    "iteration_time", "tflops_per_gpu", "model_tflops_per_gpu", "scaling_efficiency", "speedup",
    "resident",       "peak_allocated", "peak_reserved",        "peak_used",          "fits"};

/// Does the figure concern memory, so that it exists even for a run that does not fit?
bool concerns_memory(const std::string& figure);

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

/// Where a run was read.
struct Origin {
  std::string file;                ///< the scenario's
  std::string path;                ///< JSON pointer of the run: "/runs/0"
  std::vector<std::string> files;  ///< all that it was read from
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
  std::vector<Measured> measured;
  std::vector<Expectation> expect;
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
};

/// Reads and checks a whole scenario. A run whose settings cannot go together is refused by itself.
/// For all other errors it throws InputError before anything is simulated: no JSON, an unknown key,
/// a missing file.
/// Profiles and stacks are files in `profiles/` and `stacks/` beside the scenario, by name; a name
/// that ends in ".json" is a path, relative to the scenario.
/// With `instead` profiles are not read: that one stands in for all of them.
Scenario read_scenario(const std::string& file, const std::optional<cost::Profile>& instead = {});

/// The same with every variant of every run: its settings over the run's own, its suffix behind the
/// run's name; they are compared with the first variant of their baseline. Changed runs are others
/// than were measured: they have neither measured figures nor expectations, and what was set in all
/// of them is among what they assume.
Scenario read_scenario(const std::string& file, const std::vector<KeyValues>& changes);

/// A run of settings, an object as in a scenario, over a scenario's defaults. Throws InputError for
/// what is wrong with the form of either; where settings cannot go together, Run::refused says so.
/// `resolved` is not set. Keys of the defaults that nobody asks for are for their owner to refuse.
Run run_over(const JsonReader& defaults, const Json& settings, const std::string& name);

/// The same with `resolved`, so that with_settings() takes it.
Run resolved_over(const JsonReader& defaults, const Json& settings, const std::string& name);

/// The files that settings name, after defaults: profile (if asked for), stack and what that stands
/// on, server and plan; also the scenario itself.
std::vector<std::string> files_named(const JsonReader& settings, bool with_profile = true);

/// A run with other settings: `changes` is an object as in a scenario, {"strategy": {...}}, laid
/// over the run's own. Throws InputError where the settings do not go together.
Run with_settings(const Run& run, const Json& changes);

}  // namespace stratagem::study
