// Turns tasks into nodes, and waits into dependencies.
#include "report/chakra/execution_trace.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <map>

#include "base/input_error.hpp"
#include "report/chakra/execution_trace.pb.h"
#include "report/traces/measured_round.hpp"

namespace stratagem::report {
namespace {

namespace et = ChakraProtoMsg;

void add(et::Node& node, const char* name, std::int64_t value) {
  et::AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  attribute.set_int64_val(value);
}
void add_rank(et::Node& node, const char* name, int value) {
  et::AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  attribute.set_int32_val(value);
}
void add_bytes(et::Node& node, const char* name, Bytes bytes) {
  et::AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  attribute.set_uint64_val(static_cast<std::uint64_t>(bytes.value));
}

/// Chakra's CollectiveCommType.
int type_of(cost::CollectiveKind kind) {
  constexpr int all_reduce = 0, reduce = 1, all_gather = 2, broadcast = 5, all_to_all = 6,
                reduce_scatter = 7;
  switch (kind) {
    case cost::CollectiveKind::all_reduce:
      return all_reduce;
    case cost::CollectiveKind::reduce:
      return reduce;
    case cost::CollectiveKind::all_gather:
      return all_gather;
    case cost::CollectiveKind::broadcast:
      return broadcast;
    case cost::CollectiveKind::all_to_all:
      return all_to_all;
    case cost::CollectiveKind::reduce_scatter:
      return reduce_scatter;
    default:
      throw BrokenPromise("messages and copies are nodes of other types");
  }
}

bool passes_on(cost::CollectiveKind kind) {
  return kind == cost::CollectiveKind::ring_exchange || kind == cost::CollectiveKind::ring_messages;
}

class Writer {
 public:
  /// `zero` is when the iteration begins on any device.
  Writer(const program::Program& program, const sim::Timeline& timeline, sim::Instant zero,
         int device)
      : program_(program),
        timeline_(timeline),
        zero_(zero),
        device_(program.devices[device]),
        rank_(device),
        actor_(timeline.actor_of[device]),
        sequence_(program.sequences[device_.sequence]),
        tasks_(timeline.tasks[timeline.actors[actor_].sequence]),
        last_in_queue_(timeline.queues[timeline.actors[actor_].sequence].size()) {}

  std::string write() {
    et::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    append(metadata);
    nodes_.resize(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) write_task(i);
    return std::move(bytes_);
  }

 private:
  void append(const google::protobuf::MessageLite& message) {
    google::protobuf::io::StringOutputStream stream(&bytes_);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
    message.SerializeToCodedStream(&coded);
  }

  void write_task(std::size_t i) {
    const sim::FlatTask flat = tasks_[i];
    const program::Task& task = program_.blocks[flat.block].tasks[flat.task];
    et::Node node;
    node.set_name(task.name);
    set_times(node, i);
    set_dependencies(node, flat, task);
    if (const auto* kernel = std::get_if<cost::Kernel>(&task.work))
      write_kernel(node, i, *kernel);
    else
      write_collective(node, i, task.stream, std::get<program::Collective>(task.work));
    last_in_queue_[flat.queue] = nodes_[i];
  }

  void set_times(et::Node& node, std::size_t i) const {
    const std::size_t round = measured_round(timeline_);
    const sim::ActorTimes& times = timeline_.times[actor_];
    const sim::Ticks duration = times.ends[round][i] - times.begins[round][i];
    node.set_start_time_micros(
        static_cast<std::uint64_t>((times.begins[round][i] - zero_).count / 1'000'000));
    node.set_duration_micros(static_cast<std::uint64_t>((duration.count + 500'000) / 1'000'000));
    add(node, "duration_ps", duration.count);
  }

  void set_dependencies(et::Node& node, const sim::FlatTask& flat,
                        const program::Task& task) const {
    std::vector<std::uint64_t> before = last_in_queue_[flat.queue];
    const auto wait_for = [&](int number) {
      const std::vector<std::uint64_t>& nodes = nodes_[number];
      before.insert(before.end(), nodes.begin(), nodes.end());
    };
    for (const int wait : task.waits) wait_for(tasks_.number(flat.call, wait));
    for (const program::Wait& wait : sequence_.calls[flat.call].waits) {
      if (wait.task == flat.task) wait_for(tasks_.number(wait.of_call, wait.of_task));
    }
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    node.mutable_data_deps()->Add(before.begin(), before.end());
  }

  void put(et::Node& node, std::size_t i, et::NodeType type) {
    node.set_id(next_);
    node.set_type(type);
    append(node);
    nodes_[i].push_back(next_++);
  }

  void write_kernel(et::Node& node, std::size_t i, const cost::Kernel& kernel) {
    et::AttributeProto& processor = *node.add_attr();
    processor.set_name("is_cpu_op");
    processor.set_bool_val(kernel.kind == cost::KernelKind::host_optimizer);
    add(node, "num_ops", std::llround(kernel.flops.value));
    add_bytes(node, "tensor_size", kernel.traffic);
    put(node, i, et::COMP_NODE);
  }

  void write_collective(et::Node& node, std::size_t i, program::Stream stream,
                        const program::Collective& collective) {
    if (cost::concerns_host(collective.kind)) {
      const bool stores =
          stream == program::Stream::copy_out || stream == program::Stream::write_drives;
      add_bytes(node, "tensor_size", collective.payload);
      return put(node, i, stores ? et::MEM_STORE_NODE : et::MEM_LOAD_NODE);
    }
    const int group = device_.groups[collective.group];
    if (group < 0) return put(node, i, et::COMP_NODE);  // of one rank
    const std::vector<int>& ranks = program_.communicators[group].ranks;
    const bool gathers = collective.kind == cost::CollectiveKind::all_gather;
    const double parts = gathers ? static_cast<double>(ranks.size()) : 1;
    add(node, "comm_size", std::llround(collective.payload.value / parts));
    if (collective.kind == cost::CollectiveKind::send)
      return write_message(node, i, group, ranks[0], ranks[1]);
    if (passes_on(collective.kind)) return write_ring(node, i, group, ranks);
    add(node, "comm_type", type_of(collective.kind));
    et::AttributeProto& name = *node.add_attr();
    name.set_name("pg_name");
    name.set_string_val(std::to_string(group + 1));
    put(node, i, et::COMM_COLL_NODE);
  }

  void write_ring(const et::Node& node, std::size_t i, int group, const std::vector<int>& ranks) {
    const auto place = std::ranges::find(ranks, rank_) - ranks.begin();
    const auto size = static_cast<std::ptrdiff_t>(ranks.size());
    et::Node sent = node, received = node;
    write_message(sent, i, group, rank_, ranks[(place + 1) % size]);
    write_message(received, i, group, ranks[(place + size - 1) % size], rank_);
  }

  /// Messages of a pair of ranks are told apart by their group and their number within it.
  void write_message(et::Node& node, std::size_t i, int group, int source, int destination) {
    constexpr int most = 1 << 16;
    const int number = messages_[{group, source, destination}]++;
    expects(number < most, "a group passes fewer messages than a tag can count");
    add_rank(node, "comm_src", source);
    add_rank(node, "comm_dst", destination);
    add_rank(node, "comm_tag", twin_of(group) * most + number);
    put(node, i, source == rank_ ? et::COMM_SEND_NODE : et::COMM_RECV_NODE);
  }

  /// How many groups before this one have its ranks.
  int twin_of(int group) {
    const auto [known, is_new] = twins_.try_emplace(group, 0);
    const std::vector<int>& ranks = program_.communicators[group].ranks;
    for (int other = 0; is_new && other < group; ++other)
      known->second += std::ranges::is_permutation(program_.communicators[other].ranks, ranks);
    return known->second;
  }

  const program::Program& program_;
  const sim::Timeline& timeline_;
  sim::Instant zero_;
  const program::Device& device_;
  int rank_;
  int actor_;
  const program::Sequence& sequence_;
  const sim::FlatTasks& tasks_;
  std::string bytes_;
  std::uint64_t next_ = 0;
  std::vector<std::vector<std::uint64_t>> nodes_;          ///< by task
  std::vector<std::vector<std::uint64_t>> last_in_queue_;  ///< of the task before
  std::map<std::tuple<int, int, int>, int> messages_;      ///< of group, source, destination
  std::map<int, int> twins_;
};

}  // namespace

std::vector<std::string> execution_traces(const program::Program& program,
                                          const sim::Timeline& timeline) {
  expects(timeline.left_out.empty(), "an execution trace has all turns of all loops");
  const sim::Instant zero = first_begin(timeline);
  std::vector<std::string> traces;
  for (std::size_t device = 0; device < program.devices.size(); ++device)
    traces.push_back(Writer(program, timeline, zero, static_cast<int>(device)).write());
  return traces;
}

Json communicator_groups(const program::Program& program) {
  Json groups = Json::object();
  for (std::size_t group = 0; group < program.communicators.size(); ++group) {
    Json ranks = Json::array();
    for (const int rank : program.communicators[group].ranks) ranks.push(rank);
    groups.set(std::to_string(group + 1), ranks);
  }
  return groups;
}

}  // namespace stratagem::report
