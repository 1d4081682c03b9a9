// What a training framework adds to the mathematics: how many kernels an operator becomes and what
// they move.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"
#include "cost/ring.hpp"
#include "model/graph.hpp"

namespace stratagem::cost {

/// How a framework runs one kind of operator: with so many launches (`kernels`). The kernels read
/// every input and write every output once. In addition they pass `extra_passes` times over the
/// operator's largest tensor.
struct OperatorFacts {
  int kernels = 1;
  double extra_passes = 0;
  /// Copies of the random generator's state before and after the operator.
  int state_copies_before = 0;
  int state_copies_after = 0;
};

/// What a framework adds to the update of one parameter tensor. What the update itself needs is in
/// the tables of precisions and optimizers (optimizer.hpp).
struct OptimizerFacts {
  int kernels = 1;      ///< launches per parameter tensor, with those of an optimizer in one pass
  Bytes extra_traffic;  ///< device memory traffic per parameter
  int synchronizations = 0;  ///< times per parameter tensor that the host waits for the device
  /// Bytes per parameter that live all the time, such as a second gradient.
  std::map<std::string, Bytes> extra_states;
  /// Bytes per parameter that a device holds all the time, even if ranks divide its step, such as
  /// gradients that wait to be added up in another type.
  std::map<std::string, Bytes> gradient_copies = {};
  /// Bytes per parameter that a device updates, allocated from its first step to its last, such as
  /// gradients in fp32.
  std::map<std::string, Bytes> step_copies = {};
};

/// What a framework does so that a recomputed forward pass draws the same random numbers: it copies
/// the random generator's state between device and host, and the host waits for each copy. Counts
/// are per recomputed group of operators.
struct RandomStateFacts {
  Bytes size;  ///< of one copy
  int before_forward = 0;
  int before_recomputation = 0;
  int after_recomputation = 0;
};

/// How a framework takes memory from the driver.
struct MemoryFacts {
  enum class Allocator : std::uint8_t {
    none,        ///< what is live, and no more
    caching,     ///< PyTorch's, see sim/caching_allocator.hpp
    expandable,  ///< the same with expandable segments
  };
  static constexpr std::array<std::string_view, 3> allocator_names = {"none", "caching",
                                                                      "expandable"};
  Allocator allocator = Allocator::none;
  /// Of the library of matrix products, one for a stream.
  std::optional<Constant<Bytes>> workspace;
  bool workspace_allocated = false;  ///< is it a block of the allocator, or the driver's?
};

/// A tensor that an operator reads stays allocated until a later operator of its segment has run,
/// because a variable of the framework's code refers to it until then.
struct HeldInputs {
  std::string of;     ///< its kind as in Stack::operators, "masked_softmax"
  std::string until;  ///< "merge_heads": the next of this kind
};

/// Outputs that a pipeline stage's forward passes have written stay allocated, even after their
/// backward passes, until the forward pass of the `passes`-th micro-batch after it replaces them.
struct KeptOutputs {
  std::string of;  ///< the operator's kind as in Stack::operators, "exponential"
  int passes = 0;  ///< 0: nothing is kept
};

/// How a framework gathers sharded parameters and reduce-scatters their gradients (ZeRO 3).
struct ShardCollectives {
  bool by_weight = false;  ///< one for each weight; else for all of a segment, or of a bucket
  /// Before each gather, the host has the destination zeroed and waits until the device has
  /// finished its computations and reductions so far.
  bool gathers_wait = false;
  /// Kernels that copy each rank's part: out of a second whole buffer after a gather, and into one
  /// before a reduce-scatter.
  int kernels_per_rank = 0;
  /// A rank that holds all shards gathers, too: from what it keeps into a buffer of its own.
  bool of_one_rank = false;
};

/// How a framework sends updated weights to all ranks, where every rank keeps whole weights and
/// updates a share of them (ZeRO 1 and 2).
struct StepGathers {
  /// As many gathers of about equal size as buckets of this size fit into all weights, at least
  /// one. 0: one gather.
  Bytes bucket;
  int kernels_per_rank = 0;  ///< that copy its part, from a second whole buffer
};

/// A collective between operators that runs beside a computation. Without such a rule, a collective
/// starts when all computations issued before it have ended, whether it needs them or not. With a
/// rule it does not wait for one gradient (`beside`). For collectives of gradients, that is the
/// gradient of the operator whose input gradient the collective completes. For collectives of
/// activations, that is the gradient of the operator that reads the activation. Whatever reads the
/// collective's result waits for it in either case.
struct CollectiveBeside {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool of_gradients = true;  ///< of gradients of activations, or of activations
  model::Pass beside = model::Pass::weight_gradient;
};

/// When a host waits for the device before it launches more (lowering/stack/host_waits.hpp).
enum class HostWaits : std::uint8_t {
  each_micro_batch,
  each_pass,   ///< as timers of passes make it
  each_launch  ///< as debuggers want it (CUDA_LAUNCH_BLOCKING=1)
};
inline constexpr std::array<std::string_view, 3> host_wait_names = {"each micro-batch", "each pass",
                                                                    "each launch"};

/// What a host waits for when its pipeline stage exchanges tensors with others; used like
/// HostWaits.
enum class StageExchanges : std::uint8_t {
  queued,     ///< nothing
  read,       ///< the device, at each pass, which begins with reading what describes a tensor
  waited_for  ///< each exchange
};
inline constexpr std::array<std::string_view, 3> stage_exchange_names = {"queued", "read",
                                                                         "waited for"};

/// Groups of ranks for which a framework creates a communicator beside those that a plan's
/// collectives need: for barriers, flags, norms and losses.
enum class RankGroup : std::uint8_t {
  world,     ///< all ranks
  data,      ///< ranks that differ in their samples alone
  tensor,    ///< those of one stage and one share of the batch
  pipeline,  ///< the stages of one share
  model      ///< all ranks of one share of the batch: every stage's tensor ranks
};
inline constexpr std::array<std::string_view, 5> rank_group_names = {"world", "data", "tensor",
                                                                     "pipeline", "model"};

/// A named, small set of facts about a framework version, read from its source, with at most two
/// fitted scalars. No fact may depend on a model or on an experiment.
struct Stack {
  std::string name;
  std::string source;
  std::vector<std::string> precisions;  ///< for which its facts hold, of the table: "fp16"
  /// By operator kind, ".B" and ".W" appended for its gradients.
  std::map<std::string, OperatorFacts> operators;
  /// Operators that follow each other with these kinds run as one kernel: what passes between them
  /// is not moved.
  std::vector<std::vector<std::string>> fusions;
  std::vector<CollectiveBeside> collectives;
  /// Version of the NCCL whose channels and protocols carry collectives, "2.12.12"; empty: rings in
  /// closed form (collectives.hpp).
  std::string nccl;
  std::vector<RankGroup> communicators;  ///< beside those of the plan, one each
  OperatorFacts gradient_accumulation;   ///< per parameter tensor and micro-batch, on the gradient
  HostWaits host_waits = HostWaits::each_micro_batch;
  StageExchanges stage_exchanges = StageExchanges::queued;
  /// Gradients of weights are freed after the step and allocated again in the backward pass.
  /// Otherwise they live all the time. Shards of gradients always do.
  bool frees_gradients = false;
  /// A pipeline stage keeps an activation that it sent until the gradient comes back, not only
  /// until it is sent.
  bool keeps_sent = false;
  /// Where tensor ranks hold the same activation (or gradient) and send it to another stage, each
  /// sends a share, and the receivers gather the shares. With sequence parallelism ranks hold
  /// different parts already.
  bool shares_activations = false;
  bool shares_gradients = false;
  std::vector<HeldInputs> held_inputs;
  KeptOutputs kept_outputs;
  ShardCollectives shard_collectives;
  StepGathers step_gathers;
  OptimizerFacts optimizer;
  RandomStateFacts random_state;
  MemoryFacts memory;
  Constant<double> slowdown;  ///< first scalar: device time of every kernel over the profile's
  /// Second scalar: host time of a launch over the profile's `launch`.
  Constant<double> host_factor;
};

/// Device time of a kernel as this framework runs it: slowdown * kernel_time; what concerns the
/// host as it is.
Seconds kernel_time(const Kernel& kernel, const Profile& profile, const Stack& stack);

/// Reads a stack file; throws InputError for missing or unknown keys. A file with the key "base"
/// names another stack of its folder, which may have one itself, and states only what differs from
/// it.
Stack read_stack(const std::string& file);

/// The pass whose kernels a collective runs beside; nullopt if the collective waits for all
/// computations.
std::optional<model::Pass> beside(const Stack&, CollectiveKind, bool of_gradients);

/// The facts for a kind of operator, one kernel and no extra passes where the stack says nothing.
OperatorFacts facts_for(const Stack&, const std::string& kind);

}  // namespace stratagem::cost
