// The "strategy" object of a scenario: degrees of parallelism and the options of each strategy.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "base/quantity.hpp"
#include "strategies/parallel/named_dimensions.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

struct Ends;
struct Schedule;

/// How the model's layers become stages, and where these stand.
struct StageOptions {
  int chunks = 0;           ///< stages on every pipeline rank; 0: as many as the schedule has
  std::vector<int> layers;  ///< of every stage; empty: equally many
  /// Replicas of every stage, to which micro-batches are dealt in turn; empty: one of each.
  std::vector<int> replicas;
  std::vector<int>
      places;  ///< of pipeline ranks, in the order of devices; empty: rank i is the i-th
  int ranks_per_device = 1;  ///< pipeline ranks that share the time and memory of a device
  /// The pipeline rank on which the first and the last segment stand apart from the stages,
  /// `all_ranks`, or nullopt: in the first and the last stage.
  std::optional<int> embedding;
  std::optional<int> head;
  static constexpr int all_ranks = -1;
};

/// Parts of a layer's attention and of its MLP on every device, and how many layers are divided.
struct CoShard {
  int attention = 1;
  int mlp = 1;
  int layers = 0;  ///< the first ones; 0: all
};

/// How the operators of layers are divided, besides along the degrees of parallelism.
struct LayerDivision {
  bool tokens = false;  ///< sequence parallelism: over tensor ranks, which divide nothing else
  NamedDimensions operators;  ///< what single operators divide over the tensor ranks
  CoShard coshard;
};

/// Segments whose parameters are gathered or fetched ahead, where nobody says how many.
constexpr int default_prefetch = 1;

/// Which share of what belongs to the weights every data-parallel rank keeps.
struct Zero {
  int stage = 0;  ///< 1: optimizer states; 2: gradients, too; 3: parameters, too
  int ranks = 0;  ///< consecutive data ranks that keep one copy together; 0: all
  /// Segments whose parameters are gathered ahead of the one that runs; nullopt: in stages 1 and 2
  /// all are gathered after the steps.
  std::optional<int> prefetch;
  /// Elements, on a device, of the smallest parameter that is divided in stage 3.
  int whole_below = 0;
  /// Data ranks over which parameters are divided from a forward pass to the backward pass in stage
  /// 3; 1: none, they stay whole; 0: all that divide them before.
  int after_forward = 0;
  /// The shortest gap in which parameters are divided over all ranks.
  [[nodiscard]] Keep::Between gap() const {
    return after_forward == 0 ? Keep::Between::passes : Keep::Between::micro_batches;
  }
};

/// Layers whose activations wait in the memory of the host, on its drives, or on other GPUs.
struct SwapOptions {
  int layers = 0;  ///< the first ones
  Keep::Where to = Keep::Where::host;
  int prefetch = 1;  ///< layers whose activations come back ahead of the one that runs
};

/// Where something lives: on devices, in the memory of their server's processors, on its drives.
enum class HostPlace { none, memory, drives };

/// What is offloaded to the host.
struct OffloadOptions {
  HostPlace optimizer = HostPlace::none;  ///< its states; its steps run on the processors
  HostPlace parameters = HostPlace::none;
  HostPlace gradients = HostPlace::memory;  ///< where the steps are on the processors
  bool delayed_update = false;              ///< steps run beside the iteration that follows
  friend bool operator==(const OffloadOptions&, const OffloadOptions&) = default;
};

/// Which layers or operators run again, and where their inputs wait for it.
struct RecomputeOptions {
  std::string what = "none";  ///< "none" | "selective" | "full" | "operators"
  int together = 1;           ///< consecutive layers of a stage that run again as one; "full"
  int layers = 0;             ///< the first ones of every stage; 0: all; "full"
  std::vector<std::string> operators;  ///< by pattern: a group of every segment; "operators"
  bool drops_results = false;          ///< of groups by pattern, for others, too
  bool divides = false;                ///< their inputs over tensor ranks
  bool on_host = false;                ///< their inputs, until they are read again
};

/// Settings of strategies by their type. Of a type that nobody has set, all defaults.
class OwnSettings {
 public:
  template <typename Settings>
  Settings& of() {
    std::any& kept = by_type_[typeid(Settings)];
    if (!kept.has_value()) kept = Settings{};
    return *std::any_cast<Settings>(&kept);
  }
  template <typename Settings>
  [[nodiscard]] Settings of() const {
    const auto kept = by_type_.find(typeid(Settings));
    return kept == by_type_.end() ? Settings{} : *std::any_cast<Settings>(&kept->second);
  }

 private:
  std::map<std::type_index, std::any> by_type_;
};

struct Options {
  int tensor = 1;                 ///< tensor-parallel degree
  int context = 1;                ///< ranks that divide the tokens of every sequence
  int pipeline = 1;               ///< stages
  int data = 1;                   ///< data-parallel degree
  int expert = 1;                 ///< consecutive data ranks that divide the experts among them
  std::string schedule = "1f1b";  ///< order of the cells of all stages
  StageOptions stages;
  LayerDivision division;
  std::vector<std::int64_t> token_slices;  ///< tokens of every slice; empty: whole
  RecomputeOptions recompute;
  Zero zero;
  SwapOptions swap;
  OffloadOptions offload;
  /// What one strategy alone reads, declared in its own file; see own().
  OwnSettings own;
  GradientReduction gradients;

  /// Stages on every pipeline rank under a schedule.
  [[nodiscard]] int chunks_of(const Schedule& schedule) const;
  /// The same two choices as lists of ranks.
  [[nodiscard]] Ends ends(const Schedule& schedule) const;
  /// All replicas of all stages, or the pipeline's degree.
  [[nodiscard]] int pipeline_ranks() const;
};

/// Where a setting of a strategy's own goes, for its OptionList: own(&Ulysses::ranks).
template <typename Settings, typename Member>
auto own(Member Settings::*member) {
  return [member](Options& all) -> Member& { return all.own.of<Settings>().*member; };
}

}  // namespace stratagem::strategies
