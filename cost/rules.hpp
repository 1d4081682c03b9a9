// Rules: what a framework adds to the mathematics, one fact each. Each kind of rule has a small
// type here and a row in rule_kinds.cpp (its keys, and what it acts on). A file of lowering/stack
// applies it, or the pass of the lowering that makes what the rule is about.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/quantity.hpp"
#include "cost/ring.hpp"
#include "model/graph.hpp"

namespace stratagem::cost {

/// With how many launches a framework runs operators of one kind. The kernels read every input and
/// write every output once. In addition they pass `extra_passes` times over the operator's largest
/// tensor, and move `extra_traffic` for each of its elements. While they run they have buffers of
/// `temporary` for each element of the first result. For those of forward passes the framework
/// keeps `kept_buffers` that live all the time, each as large as the largest first result. Also of
/// an optimizer's step of one parameter tensor ("optimizer_step"), and of adding to a gradient
/// ("gradient_accumulation"). Of operators that run as one kernel the last one's `slowdown` counts.
struct OperatorKernels {
  std::string of;  ///< "gelu", "gelu.B" (the gradient of its input), "embedding.W" (of its weight)
  /// Pattern of the name within a layer of what it is about, of gradients that of the operator
  /// itself; "": any.
  std::string named = {};
  /// Is it about operators on tensors of experts only, each of which has `launches` of its own?
  bool each_expert = false;
  int launches = 1;
  double extra_passes = 0;
  Bytes extra_traffic = {};
  int synchronizations = 0;  ///< how often the host waits for what the kernels have written
  double slowdown = 1;       ///< device time of the kernels over that of the profile's
  Bytes temporary = {};
  int kept_buffers = 0;
  /// Of steps: where ranks that keep whole weights step a share each, is that a piece of one flat
  /// buffer, with the tensors in it? Otherwise it is a piece of every tensor.
  bool flat_shares = false;
  /// Does a library launch the kernels, within what the framework calls for another operator?
  bool in_library = false;
  bool operator==(const OperatorKernels&) const = default;
};

/// Operators that follow each other with these kinds run as one kernel: what passes between them
/// is not moved.
struct Fusion {
  std::vector<std::string> kinds;
  std::string kernel = {};  ///< the one of them whose kernel it is; "": the last
  bool operator==(const Fusion&) const = default;
};

/// How batches of products in 16 bits, as those of attention's heads, are computed where an operand
/// has rows that do not begin at multiples of 16 bytes. Without a rule: as all others. Single
/// products keep tensor cores busy with rows of any length.
enum class UnalignedBatches : std::uint8_t {
  in_fp32  ///< without tensor cores, at the rates of fp32 products
};

/// How products are launched whose matrices are one for each expert. Without a rule: as one kernel.
/// Either way they take as long as a batch.
enum class GroupedProducts : std::uint8_t {
  one_by_one  ///< a launch for each expert, in a loop of a library, on streams beside each other
};

/// Operators that CUDA graphs have: those that follow each other are one launch, up to one on which
/// the host waits. Graphs change neither what kernels take nor what is allocated.
struct CudaGraph {
  std::vector<std::string> operators;  ///< patterns of names within a layer: "attention.*"
  bool operator==(const CudaGraph&) const = default;
};

/// Which implementation of fused attention runs: the first of these (attention.hpp) that a GPU has
/// constants for.
struct PreferredAttention {
  std::vector<std::string> implementations;
  bool operator==(const PreferredAttention&) const = default;
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
  bool operator==(const CollectiveBeside&) const = default;
};

/// A gather of tensor ranks that a product of linear layers reads next is cut with that product
/// into pieces of tokens. Every rank multiplies its own share first, which needs no gather.
///   ring_exchange: n ranks pass their shares on in a ring, n - 1 exchanges by copy engines. Each
///     share is multiplied when it has come, on streams whose kernels run beside each other
///   own_share_first: one gather runs beside the product of the own share. What else has been
///     gathered is multiplied after it: the tokens before the own share and those after it, in two
///     products of about equal size as on the middle ranks; in one where there are two ranks
struct GatherInPieces {
  enum class By : std::uint8_t { ring_exchange, own_share_first };
  bool of_gradients = false;  ///< of gradients of activations, or of activations
  By by = By::ring_exchange;
  bool operator==(const GatherInPieces&) const = default;
};

/// A product of a forward pass whose partial results tensor ranks reduce-scatter next is cut with
/// that collective into equal pieces of tokens. A piece is scattered while the next one is
/// multiplied, on streams whose kernels run beside each other. The collective may have
/// multiprocessors of its own: the product runs on the others all the time, and no communication
/// slows it down otherwise.
struct ScatterInPieces {
  int pieces = 2;
  int multiprocessors = 0;  ///< of the collective; 0: it shares all, as others do
  bool operator==(const ScatterInPieces&) const = default;
};

/// What tensor ranks gather between operators lies in so many buffers that live all the time, each
/// as large as the largest of it on its rank, unless a later pass reads it.
struct GatherBuffers {
  int number = 1;
  bool operator==(const GatherBuffers&) const = default;
};

/// Where tensor ranks hold the same of these and send it to another stage, each sends a share, and
/// the receivers gather the shares. With sequence parallelism ranks hold different parts already.
enum class StageShares : std::uint8_t { activations, gradients };

/// A tensor that an operator reads stays allocated until a later operator of its segment has run,
/// because a variable of the framework's code refers to it until then.
struct HeldInputs {
  std::string of;     ///< the reader's kind, "masked_softmax"
  std::string until;  ///< "merge_heads": the next of this kind
  bool operator==(const HeldInputs&) const = default;
};

/// Outputs that a pipeline stage's forward passes have written stay allocated, even after their
/// backward passes, until the forward pass of the `passes`-th micro-batch after it replaces them.
struct KeptOutputs {
  std::string of;  ///< the writer's kind, "exponential"
  int passes = 1;
  bool operator==(const KeptOutputs&) const = default;
};

enum class Lifetime : std::uint8_t {
  /// Gradients of weights are freed after the step and allocated again in the backward pass.
  /// Otherwise they live all the time. Shards of gradients always do.
  gradients_until_step,
  /// A pipeline stage keeps an activation that it sent until the gradient comes back. Otherwise it
  /// keeps it until it is sent.
  sent_until_gradients,
  /// What a pipeline stage has received in a forward pass, and its gradient, live until it receives
  /// the next. Otherwise they live until the backward pass has read, or sent, them.
  received_until_next
};

/// Where a host waits for the device before it launches more.
enum class HostWaits : std::uint8_t {
  each_micro_batch,    ///< before its first forward pass on a stage, as reading its sizes makes it
  each_pass,           ///< before each pass, as timers of passes make it
  each_received_pass,  ///< before passes that begin with reading what describes a received tensor
  each_exchange,       ///< for each exchange of tensors with another pipeline stage
  each_exchange_unless_interleaved,  ///< the same, but not on ranks with several stages
  each_launch                        ///< as debuggers want it (CUDA_LAUNCH_BLOCKING=1)
};

/// What the host does for each forward and backward pass of a cell besides launching operators, as
/// calling the pass, starting automatic differentiation, and handing over tensors.
struct PassWork {
  int launches = 0;  ///< it takes as long as so many
  bool operator==(const PassWork&) const = default;
};

/// Groups of ranks for which a framework creates communicators beside those that a plan's
/// collectives need: for barriers, flags, norms and losses.
enum class RankGroup : std::uint8_t {
  world,     ///< all ranks
  data,      ///< ranks that differ in their samples alone
  tensor,    ///< those of one stage and one share of the batch
  pipeline,  ///< the stages of one share
  model      ///< all ranks of one share of the batch: every stage's tensor ranks
};

struct Communicators {
  RankGroup group = RankGroup::world;
  int number = 1;
  bool operator==(const Communicators&) const = default;
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
  bool operator==(const ShardCollectives&) const = default;
};

/// What ranks gather that divide weights which products read in another type (ZeRO 3). Without a
/// rule such plans are refused.
enum class GatheredWeights : std::uint8_t {
  as_products_read_them  ///< copies in that type, one for each pass, of shards that are cast after
                         ///< the step
};

/// How a framework sends updated weights to all ranks, where every rank keeps whole weights and
/// updates a share of them (ZeRO 1 and 2).
struct StepGathers {
  /// As many gathers of about equal size as buckets of this size fit into all weights, at least
  /// one. 0: one gather.
  Bytes bucket = {};
  int kernels_per_rank = 0;  ///< that copy its part, from a second whole buffer
  bool operator==(const StepGathers&) const = default;
};

/// What ranks sum up that keep whole gradients and step a share each (ZeRO 1). Without a rule: the
/// shares.
enum class StepSums : std::uint8_t { whole_gradients };

/// Bytes per parameter that a framework keeps beside the states of the precision and the optimizer.
struct ExtraState {
  enum class With : std::uint8_t {
    states,     ///< of parameters that a device steps, all the time, where the steps run
    gradients,  ///< of parameters that a device holds, all the time, whoever steps them
    steps,      ///< of parameters that a device steps, from its first step to its last
    until_next  ///< the same, and on until the next iteration begins
  };
  std::string name;  ///< "gradients in fp32"
  Bytes bytes = {};
  With with = With::states;
  bool copies_gradients = false;  ///< to another type: none where gradients have so many bytes
  bool operator==(const ExtraState&) const = default;
};

/// So that a recomputed forward pass draws the same random numbers, a framework copies the random
/// generator's state between device and host, and the host waits for each copy.
struct RandomStateCopies {
  std::string when;  ///< "after recomputation", "before attention_dropout": of random_state_moments
  int copies = 1;
  Bytes size = {};  ///< of one
  bool operator==(const RandomStateCopies&) const = default;
};

using Rule = std::variant<OperatorKernels, Fusion, UnalignedBatches, GroupedProducts, CudaGraph,
                          PreferredAttention, CollectiveBeside, GatherInPieces, ScatterInPieces,
                          GatherBuffers, StageShares, HeldInputs, KeptOutputs, Lifetime, HostWaits,
                          PassWork, Communicators, ShardCollectives, GatheredWeights, StepGathers,
                          StepSums, ExtraState, RandomStateCopies>;

}  // namespace stratagem::cost
