// The program of a plan: the tasks of every device, with streams, waits, buffers and groups, for
// both interpreters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/quantity.hpp"
#include "cost/kernel.hpp"
#include "cost/ring.hpp"
#include "model/graph.hpp"
#include "placement/grid.hpp"
#include "program/calls.hpp"
#include "program/operation.hpp"

namespace stratagem::program {

/// The streams of a device. Tasks of a stream run one after another, in program order. Sends and
/// receives have a queue for each group, so that messages between other devices do not delay them.
enum class Stream : std::uint8_t {
  compute,                  ///< and collectives at which computations wait anyway
  communication,            ///< collectives that the next computation waits for
  exchange,                 ///< all-to-alls that it waits for, of a communicator of their own
  gradient_communication,   ///< reductions of weight gradients
  parameter_communication,  ///< gathers of weights ahead of the segments that read them
  copy_out,                 ///< to the memory of the host
  copy_in,                  ///< and back
  host,                     ///< what the processors of the server compute
  read_drives,              ///< from the drives of the server to the memory of the host
  write_drives,             ///< and back
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
};
inline constexpr std::array<std::string_view, 14> stream_names = {"compute",
                                                                  "communication",
                                                                  "exchange",
                                                                  "gradient communication",
                                                                  "parameter communication",
                                                                  "copy to host",
                                                                  "copy from host",
                                                                  "host",
                                                                  "read drives",
                                                                  "write drives",
                                                                  "send forward",
                                                                  "receive forward",
                                                                  "send backward",
                                                                  "receive backward"};

/// Has a stream a queue for each group?
constexpr bool transfers(Stream stream) { return stream >= Stream::send_forward; }

/// Is it a queue of the device or of its copy engines, not of the host and its drives?
constexpr bool runs_on_device(Stream stream) {
  return stream != Stream::host && stream != Stream::read_drives && stream != Stream::write_drives;
}

/// The memory category of a buffer.
enum class Category : std::uint8_t {
  parameters,
  gradients,
  optimizer_states,
  caches,               ///< keys and values of tokens that were processed before
  activations,          ///< kept for the backward pass
  checkpoints,          ///< inputs of what is recomputed
  statistics,           ///< of norms and of the loss: per token
  temporaries,          ///< everything that is freed within its block
  gathered_parameters,  ///< weights that wait in shards, or on the host, while they are whole here
  whole_gradients,      ///< gradients that are reduced to shards, or leave for the host, until then
  staged,               ///< on the host, what comes from its drives or goes there
};
inline constexpr std::array<std::string_view, 11> category_names = {
    "parameters",      "gradients",   "optimizer_states",
    "caches",          "activations", "checkpoints",
    "statistics",      "temporaries", "gathered_parameters",
    "whole_gradients", "staged"};

/// Does a buffer of this category live from the first iteration to the last?
constexpr bool is_resident(Category category) {
  return category == Category::parameters || category == Category::gradients ||
         category == Category::optimizer_states || category == Category::caches;
}

/// Whose memory a buffer lies in.
enum class Residence : std::uint8_t {
  device,
  host,   ///< of the server that the device stands in
  drives  ///< of that server
};

/// A buffer as a block names it. `tensor` is a place in the table of tensors of a segment; a call
/// binds it to the tensor at that place in its own segment's table, of its own micro-batch. In
/// calls without a segment it is the tensor itself.
struct Slot {
  std::string name;
  int tensor = -1;
  Bytes bytes;
  Category category = Category::temporaries;
  Residence place = Residence::device;
  /// How the part that it holds lies, see Operand; of what operations name.
  placement::Layout layout = {};
  std::vector<int> shards = {};
  std::vector<placement::Mask> masks = {};
};

/// One collective of a group of devices; `payload` as in cost/ring.hpp. `group` indexes
/// Device::groups.
struct Collective {
  cost::CollectiveKind kind = cost::CollectiveKind::all_reduce;
  model::Combine combine = model::Combine::sum;  ///< of reductions
  int group = 0;
  Bytes payload;
  bool in_library = false;  ///< launched within a library's call for a product
};

/// One operation on one stream of one device. Slots are indices into its block's; `waits` are
/// indices of earlier tasks of the block that must have ended. A task also follows the task before
/// it on its stream.
struct Task {
  std::string name;
  std::variant<cost::Kernel, Collective> work;
  Stream stream = Stream::compute;
  std::vector<int> waits;
  std::vector<int> reads;
  std::vector<int> writes;
  std::vector<int> allocates;  ///< slots allocated when it starts
  std::vector<int> frees;      ///< slots freed when it ends
  /// Times that the host waits for the device to finish it before going on.
  int synchronizations = 0;
  bool recomputed = false;  ///< repeats a forward task
  /// What it does to values, in this order; none where values stay as they are, or where lowering
  /// does not say it: of casts, of copies to the host and back.
  std::vector<Operation> operations = {};
};

/// Tasks that several calls share.
struct Block {
  std::string name;
  std::vector<Slot> slots;
  std::vector<Task> tasks;
};

/// A task of a sequence.
struct TaskOfCall {
  int call = 0;
  int task = 0;
  friend auto operator<=>(const TaskOfCall&, const TaskOfCall&) = default;
};

/// A buffer that belongs to the device, or to its part of its server's memory or drives, and not to
/// a micro-batch. It lives from the first iteration to the last, or in each iteration from the
/// start of one task to the end of another.
struct Resident {
  struct Span {
    TaskOfCall first;
    TaskOfCall last;
  };
  Category category = Category::parameters;
  Bytes bytes;
  std::optional<Span> span = {};  ///< none: always. Only where iterations do not overlap
  /// With a span: it lives on until the next iteration begins, and counts among what lives between
  /// iterations. The replay of memory frees it at the span's end: a peak behind that lacks it.
  bool until_next = false;
  Residence place = Residence::device;
  /// The parameter that this buffer holds, or whose gradient it holds, and its distribution: a
  /// layout on a grid, or masks. -1 for framework buffers that hold no parameter.
  model::TensorId tensor = -1;
  int grid = -1;
  placement::Layout layout = {};
  std::vector<int> shards = {};
  std::vector<placement::Mask> masks = {};
  int versions = 1;  ///< of the parameter: `bytes` has room for so many
};

/// Tasks first, ..., end - 1 of a call, launched one after another.
struct Launch {
  int call = 0;
  int first = 0;
  int end = 0;
  friend auto operator<=>(const Launch&, const Launch&) = default;
};

/// What one class of devices does in one iteration.
struct Sequence {
  Calls calls;
  std::vector<Resident> residents;
  /// The order of launches, of calls as they are stored: every task of every call once, those of a
  /// call in order, each after what it waits for. A loop repeats the launches of its body. Calls
  /// whose launches alternate follow each other in one turn. Empty: call after call.
  std::vector<Launch> launches = {};
};

/// The devices of one group, in the order that gives ring neighbours and, for sends, {source,
/// destination}.
struct Communicator {
  std::vector<int> ranks;
};

struct Device {
  int sequence = 0;
  /// By the `group` of a task: index into Program::communicators, -1 if it has none.
  std::vector<int> groups;
};

/// One round of a plan on all its devices. A round is one iteration; where iterations overlap
/// (`lag` above 0) it is one iteration's worth of calls, some of them for earlier iterations. n
/// iterations take n + lag rounds, and waits and streams are those of a round. A value: it can be
/// printed, compared and tested.
struct Program {
  /// By segment: what Slot::tensor indexes.
  std::vector<std::vector<model::TensorId>> segment_tensors;
  std::vector<placement::Grid> grids;  ///< of all copies of all stages
  std::vector<Communicator> communicators;
  std::vector<Block> blocks;
  std::vector<Sequence> sequences;
  std::vector<Device> devices;
  int lag = 0;  ///< the largest of all calls
};

/// The tensor that a call binds to a place that its block names: see Slot.
model::TensorId tensor_of(const Program& program, const auto& call, int place) {
  return call.segment < 0 ? place : program.segment_tensors[call.segment][place];
}

/// Tasks of one sequence / of one device's iteration.
std::size_t task_count(const Program&, const Sequence&);

/// Calls `act` with the launches of a sequence, calls by number: whole calls where it names none.
/// Calls without tasks have none.
template <typename Act>
void each_launch(const Program& program, const Sequence& sequence, const Act& act) {
  const Calls& calls = sequence.calls;
  const std::vector<Launch>& launches = sequence.launches;
  for (std::size_t c = 0; launches.empty() && c < calls.size(); ++c) {
    const auto tasks = static_cast<int>(program.blocks[calls.body(c).block].tasks.size());
    if (tasks > 0) act(Launch{static_cast<int>(c), 0, tasks});
  }
  for (std::size_t first = 0, end = 0; first < launches.size(); first = end) {
    const Loop* loop = calls.loop_of(launches[first].call);
    for (end = first + 1; loop != nullptr && end < launches.size(); ++end) {
      if (calls.loop_of(launches[end].call) != loop) break;
    }
    for (int turn = 0; turn < (loop == nullptr ? 1 : loop->turns); ++turn) {
      for (std::size_t i = first; i < end; ++i)
        act(Launch{calls.number({launches[i].call, turn}), launches[i].first, launches[i].end});
    }
  }
}

/// Does the host wait for this before it launches a task of the call?
constexpr bool is_before(const HostWait& wait, int task) {
  return wait.before < 0 || wait.before == task;
}
/// What the host waits for before a task of a call, in a row.
std::vector<HostWait> host_waits_before(const Call&, int task);

/// Does the host wait for the queue of a stream where it waits for all launched so far on stream
/// `number` (-1: on the device)?
constexpr bool waits_for_stream(int number, Stream stream) {
  if (number >= 0) return static_cast<int>(stream) == number;
  return runs_on_device(stream) && !transfers(stream);
}

/// By call: the first of the calls whose launches alternate with its own; itself if none do.
std::vector<int> first_beside(const Sequence&);

/// The same calls and launches without loops.
Sequence unrolled(const Sequence&);

/// Hardware FLOPs: those of the kernels of one iteration on all devices. Model FLOPs are
/// model::step_flops.
Flops hardware_flops(const Program&);

/// Does a device's collective move bytes over links? A copy to or from its host does. In a group of
/// one rank a collective is at most a copy on the device.
bool crosses_links(const Program&, const Device&, const Collective&);

}  // namespace stratagem::program
