// The whole of lowering: blocks of every segment, borders between them, and the calls of every stage.
#include "strategies/lower.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/lower/block.hpp"
#include "strategies/lower/cells.hpp"
#include "strategies/lower/gradients.hpp"
#include "strategies/lower/grid.hpp"
#include "strategies/lower/kernels.hpp"
#include "strategies/lower/segment.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// A block once it has its number in the program.
struct Registered {
  int id = -1;
  LoweredBlock lowered;
};

std::string text_of(const std::map<int, Border>& borders) {
  std::string text;
  for (const auto& [place, border] : borders) {
    text += "@" + std::to_string(place) + "c" + std::to_string(static_cast<int>(border.category));
    for (const AxisRole& role : border.layout) text += "," + std::to_string(role.dim);
  }
  return text;
}

class Lowering {
 public:
  Lowering(const Plan& plan, const cost::Stack& stack)
      : plan_(plan), stack_(stack), graph_(plan.graph()), facts_(segment_facts(graph_)) {
    make_grids();
    check_borders();
  }

  Program run() {
    Groups groups(program_, device_count_);
    groups_ = &groups;
    for (const SegmentFacts& facts : facts_) program_.segment_tensors.push_back(facts.tensors);
    for (std::size_t i = 0; i < facts_.size(); ++i) lower_forward_of(static_cast<int>(i));
    for (std::size_t i = facts_.size(); i-- > 0;) lower_backward_of(static_cast<int>(i));
    const std::vector<std::vector<Cell>> cells = ordered_cells(plan_);
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) {
      program_.sequences.push_back(sequence_of(static_cast<int>(stage), cells[stage]));
    }
    return std::move(program_);
  }

 private:
  // ---- grids and borders

  void make_grids() {
    stage_of_.resize(facts_.size());
    std::map<int, int> stage_of_device;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const auto stage = static_cast<int>(s);
      grids_.push_back(grid_of(plan_, plan_.stages[s]));
      for (const int segment : plan_.stages[s]) stage_of_[segment] = stage;
      for (int i = 0; i < grids_[s].count(); ++i) {
        const int device = grids_[s].device(grids_[s].coordinates(i));
        if (!stage_of_device.emplace(device, stage).second) {
          throw InputError("", "/strategy", "one part of one stage on each device", "two on device " + std::to_string(device));
        }
      }
      if (grids_[s].sizes() != grids_[0].sizes()) {
        throw InputError("", "/strategy", "stages with equal grids of devices", "");
      }
    }
    device_count_ = static_cast<int>(stage_of_device.size());
    if (stage_of_device.rbegin()->first != device_count_ - 1) {
      throw InputError("", "/strategy", "every device from 0 to " + std::to_string(stage_of_device.rbegin()->first) + " in use", "");
    }
    program_.devices.resize(device_count_);
    for (const auto& [device, stage] : stage_of_device) program_.devices[device].sequence = stage;
  }

  void check_borders() const {
    std::set<TensorId> read;
    for (const SegmentFacts& facts : facts_) {
      for (const TensorId tensor : facts.activations_in) {
        if (!read.insert(tensor).second) {
          throw InputError("", "/model", "every activation to be read by one segment besides its own", graph_.tensors[tensor].name);
        }
        const int distance = stage_of_[facts.segment] - stage_of_[producer_of(tensor)];
        if (distance < 0 || distance > 1) {
          throw InputError("", "/strategy", "activations to cross from a stage to the next only", graph_.tensors[tensor].name);
        }
      }
    }
  }

  [[nodiscard]] int producer_of(TensorId tensor) const {
    const auto found = std::ranges::find_if(facts_, [tensor](const SegmentFacts& facts) {
      return std::ranges::find(facts.activations_out, tensor) != facts.activations_out.end();
    });
    expects(found != facts_.end(), "an activation that enters a segment left another");
    return found->segment;
  }

  // ---- blocks

  [[nodiscard]] BlockContext context(int segment) const {
    return {plan_, stack_, grids_[stage_of_[segment]], *groups_, facts_[segment]};
  }

  template <typename Lower>
  const Registered& registered(const std::string& key, const Lower& lower) {
    const auto [found, fresh] = blocks_.emplace(key, nullptr);
    if (fresh) {
      found->second = std::make_unique<Registered>(Registered{static_cast<int>(program_.blocks.size()), lower()});
      program_.blocks.push_back(found->second->lowered.block);
    }
    return *found->second;
  }

  [[nodiscard]] std::map<int, Border> borders_in(const SegmentFacts& facts, const std::vector<TensorId>& tensors) const {
    std::map<int, Border> in;
    for (const TensorId tensor : tensors) in[facts.place.at(tensor)] = borders_.at(tensor);
    return in;
  }

  /// As what the segment that reads an activation counts it.
  [[nodiscard]] Category category_for_reader(TensorId tensor) const {
    for (const SegmentFacts& facts : facts_) {
      if (std::ranges::find(facts.activations_in, tensor) == facts.activations_in.end()) continue;
      if (plan_.recomputes(facts.segment)) return Category::checkpoints;
      return facts.kept.contains(tensor) ? Category::activations : Category::temporaries;
    }
    return Category::temporaries;
  }

  void note_borders(const SegmentFacts& facts, const std::vector<TensorId>& tensors, const LoweredBlock& lowered) {
    for (const TensorId tensor : tensors) borders_[tensor] = lowered.out.at(facts.place.at(tensor));
  }

  void lower_forward_of(int segment) {
    const SegmentFacts& facts = facts_[segment];
    const std::map<int, Border> in = borders_in(facts, facts.activations_in);
    std::map<int, Category> out;
    std::string key = "F" + structure_key(plan_, grids_[stage_of_[segment]], facts) + text_of(in);
    for (const TensorId tensor : facts.activations_out) {
      const Category category = category_for_reader(tensor);
      out[facts.place.at(tensor)] = category;
      key += "o" + std::to_string(static_cast<int>(category));
    }
    std::set<int> last_use;
    for (const auto& [place, border] : in) last_use.insert(place);
    const Registered& block = registered(key, [&] { return lower_forward(context(segment), in, out, last_use); });
    forward_[segment] = &block.lowered;
    forward_id_[segment] = block.id;
    note_borders(facts, facts.activations_out, block.lowered);
  }

  void lower_backward_of(int segment) {
    const SegmentFacts& facts = facts_[segment];
    std::map<int, Border> kept;
    for (const TensorId tensor : facts.activations_in) {
      const bool needed = plan_.recomputes(segment) || facts.kept.contains(tensor);
      if (needed) kept[facts.place.at(tensor)] = borders_.at(tensor);
    }
    if (!plan_.recomputes(segment)) {
      for (const TensorId tensor : facts.kept) {
        const auto found = forward_[segment]->out.find(facts.place.at(tensor));
        if (found != forward_[segment]->out.end()) kept.emplace(*found);
      }
    }
    const std::map<int, Border> in = borders_in(facts, facts.gradients_in);
    const std::string key = "B" + structure_key(plan_, grids_[stage_of_[segment]], facts) + text_of(kept) + text_of(in);
    const Registered& block = registered(key, [&] { return lower_backward(context(segment), kept, in); });
    backward_[segment] = &block.lowered;
    backward_id_[segment] = block.id;
    note_borders(facts, facts.gradients_out, block.lowered);
  }

  // ---- sequences

  /// Where a tensor of a micro-batch was last written in the sequence under construction.
  struct Written {
    int call;
    int task;
  };

  Sequence sequence_of(int stage, const std::vector<Cell>& cells) {
    sequence_ = {};
    written_.clear();
    buckets_ = gradient_buckets(plan_, grids_[stage], plan_.stages[stage], facts_, forward_, backward_);
    for (const Cell& cell : cells) {
      cell.pass == CellPass::forward ? add_forward(stage, cell) : add_backward(stage, cell);
    }
    reduce_after(-1);
    reduce_shared_parameters(stage);
    step(stage);
    return std::move(sequence_);
  }

  [[nodiscard]] Stream stream_of(const Written& written) const {
    return program_.blocks[sequence_.calls[written.call].block].tasks[written.task].stream;
  }

  int add_call(int block, int segment, const Cell& cell) {
    sequence_.calls.push_back({.block = block, .segment = segment, .cell = cell, .waits = {}});
    return static_cast<int>(sequence_.calls.size()) - 1;
  }

  /// Makes the first task that reads a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor) {
    const auto written = written_.find(tensor);
    const auto reader = lowered.first_reader.find(facts.place.at(tensor));
    if (written == written_.end() || reader == lowered.first_reader.end()) return;
    if (lowered.block.tasks[reader->second].stream == stream_of(written->second)) return;
    sequence_.calls[call].waits.push_back({reader->second, written->second.call, written->second.task});
  }

  void add_segment(int segment, const Cell& cell, int block, const LoweredBlock& lowered,
                   const std::vector<TensorId>& in, const std::vector<TensorId>& out) {
    const SegmentFacts& facts = facts_[segment];
    const int call = add_call(block, segment, cell);
    for (const TensorId tensor : in) connect(call, facts, lowered, tensor);
    for (const TensorId tensor : out) {
      const auto writer = lowered.last_writer.find(facts.place.at(tensor));
      if (writer != lowered.last_writer.end()) written_[tensor] = {call, writer->second};
    }
  }

  void add_forward(int stage, const Cell& cell) {
    for (const int segment : plan_.stages[stage]) {
      const SegmentFacts& facts = facts_[segment];
      for (const TensorId tensor : facts.activations_in) {
        const int from = stage_of_[producer_of(tensor)];
        if (from != stage) transfer(tensor, from, stage, cell, Stream::receive_forward);
      }
      add_segment(segment, cell, forward_id_[segment], *forward_[segment], facts.activations_in, facts.activations_out);
      for (const TensorId tensor : facts.activations_out) {
        const int to = stage_of_[reader_of(tensor)];
        if (to != stage) transfer(tensor, stage, to, cell, Stream::send_forward);
      }
    }
  }

  void add_backward(int stage, const Cell& cell) {
    const std::vector<int>& segments = plan_.stages[stage];
    const bool last = cell.micro_batch == plan_.micro_batches - 1;
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      const SegmentFacts& facts = facts_[*segment];
      for (const TensorId tensor : facts.activations_out) {
        const int from = stage_of_[reader_of(tensor)];
        const TensorId gradient = graph_.gradient_of[tensor];
        if (from != stage) transfer(gradient, from, stage, cell, Stream::receive_backward);
      }
      add_segment(*segment, cell, backward_id_[*segment], *backward_[*segment], facts.gradients_in, facts.gradients_out);
      for (const TensorId tensor : facts.activations_in) {
        const int to = stage_of_[producer_of(tensor)];
        if (to != stage) transfer(graph_.gradient_of[tensor], stage, to, cell, Stream::send_backward);
      }
      if (last) last_backward_call_[*segment] = static_cast<int>(sequence_.calls.size()) - 1;
      if (last && plan_.gradients.overlap) reduce_after(*segment);
    }
  }

  [[nodiscard]] int reader_of(TensorId tensor) const {
    const auto found = std::ranges::find_if(facts_, [tensor](const SegmentFacts& facts) {
      return std::ranges::find(facts.activations_in, tensor) != facts.activations_in.end();
    });
    expects(found != facts_.end(), "an activation that left a segment enters another");
    return found->segment;
  }

  /// One half of a transfer between stages, on the stage whose sequence is under construction.
  void transfer(TensorId tensor, int from, int to, const Cell& cell, Stream stream) {
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const Border& border = borders_.at(tensor);
    const model::Tensor& t = graph_.tensors[tensor];
    const int group = groups_->between(grids_[from], grids_[to]);
    const std::string key = "transfer " + std::to_string(tensor) + (sends ? "s" : "r");
    const int block = registered(key, [&] {
      const Bytes bytes = local_bytes(t, border.layout, grids_[from]);
      LoweredBlock lowered;
      lowered.block = {.name = (sends ? "send " : "receive ") + t.name,
                       .slots = {{t.name, tensor, bytes, border.category}},
                       .tasks = {Task{}}};
      Task& task = lowered.block.tasks.front();
      task.name = lowered.block.name;
      task.work = Collective{cost::CollectiveKind::send, group, bytes};
      task.stream = stream;
      (sends ? task.reads : task.writes) = {0};
      (sends ? task.deaths : task.births) = {0};
      return lowered;
    }).id;
    const int call = add_call(block, -1, cell);
    if (!sends) {
      written_[tensor] = {call, 0};
    } else if (const auto written = written_.find(tensor); written != written_.end()) {
      sequence_.calls[call].waits.push_back({0, written->second.call, written->second.task});
    }
  }

  // ---- gradients and optimizer

  /// Calls for every bucket that the given segment completes; for all that are left if it is -1.
  void reduce_after(int segment) {
    for (Bucket& bucket : buckets_) {
      if (bucket.gradients.empty() || (segment >= 0 && bucket.after != segment)) continue;
      const int stage = stage_of_[bucket.after];
      const int of_call = segment >= 0 ? last_backward_call_.at(segment) : static_cast<int>(sequence_.calls.size()) - 1;
      reduce(bucket, groups_->along(grids_[stage], bucket.axes), last_compute_before(of_call));
      bucket.gradients.clear();
    }
  }

  /// The last task on the compute stream that was issued up to a call.
  [[nodiscard]] Written last_compute_before(int call) const {
    for (; call >= 0; --call) {
      const std::vector<Task>& tasks = program_.blocks[sequence_.calls[call].block].tasks;
      for (std::size_t task = tasks.size(); task-- > 0;) {
        if (tasks[task].stream == Stream::compute) return {call, static_cast<int>(task)};
      }
    }
    throw BrokenPromise("a gradient was computed before it is reduced");
  }

  void reduce(const Bucket& bucket, int group, const Written& after) {
    Block block{.name = "reduce gradients", .slots = {}, .tasks = {Task{}}};
    Task& task = block.tasks.front();
    task.name = block.name;
    task.work = Collective{cost::CollectiveKind::all_reduce, group, bucket.bytes};
    task.stream = Stream::gradient_communication;
    for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
      const TensorId gradient = bucket.gradients[i];
      task.reads.push_back(static_cast<int>(i));
      block.slots.push_back({graph_.tensors[gradient].name, gradient, bucket.sizes[i], Category::gradients});
    }
    task.writes = task.reads;
    program_.blocks.push_back(std::move(block));
    const int call = add_call(static_cast<int>(program_.blocks.size()) - 1, -1, {});
    sequence_.calls[call].waits.push_back({0, after.call, after.task});
  }

  /// A parameter that two stages read (tied embeddings) has a partial gradient on each.
  void reduce_shared_parameters(int stage) {
    const auto mine = parameter_layouts(plan_, plan_.stages[stage], facts_, forward_);
    for (std::size_t other = 0; other < plan_.stages.size(); ++other) {
      if (static_cast<int>(other) == stage) continue;
      const auto theirs = parameter_layouts(plan_, plan_.stages[other], facts_, forward_);
      Bucket bucket;
      for (const auto& [parameter, layout] : mine) {
        if (!theirs.contains(parameter)) continue;
        bucket.gradients.push_back(graph_.gradient_of[parameter]);
        bucket.sizes.push_back(local_bytes(graph_.tensors[parameter], layout, grids_[stage]));
        bucket.bytes += bucket.sizes.back();
      }
      if (bucket.gradients.empty()) continue;
      const std::size_t first = std::min<std::size_t>(stage, other);
      const std::size_t second = std::max<std::size_t>(stage, other);
      const int group = groups_->between(grids_[first], grids_[second]);
      reduce(bucket, group, last_compute_before(static_cast<int>(sequence_.calls.size()) - 1));
    }
  }

  void step(int stage) {
    const std::map<TensorId, Layout> parameters = parameter_layouts(plan_, plan_.stages[stage], facts_, forward_);
    const int reductions_end = static_cast<int>(sequence_.calls.size());
    std::set<TensorId> stepped;
    bool first = true;
    for (const int segment : plan_.stages[stage]) {
      Block block = step_block(stage, segment, parameters, stepped);
      if (block.tasks.empty()) continue;
      std::string key = "step";
      for (const Slot& slot : block.slots) key += " " + std::to_string(slot.tensor) + ":" + slot.name + std::to_string(slot.bytes.value);
      const int id = registered(key, [&] {
        LoweredBlock lowered;
        lowered.block = std::move(block);
        return lowered;
      }).id;
      const int call = add_call(id, segment, {});
      if (std::exchange(first, false)) wait_for_reductions(call, reductions_end);
    }
    add_residents(stage, parameters);
  }

  void wait_for_reductions(int call, int end) {
    for (int earlier = end - 1; earlier >= 0; --earlier) {
      if (program_.blocks[sequence_.calls[earlier].block].tasks[0].stream == Stream::gradient_communication) {
        sequence_.calls[call].waits.push_back({0, earlier, 0});
        return;  // earlier ones are on the same stream
      }
    }
  }

  Block step_block(int stage, int segment, const std::map<TensorId, Layout>& parameters, std::set<TensorId>& stepped) {
    const SegmentFacts& facts = facts_[segment];
    Block block{.name = "step", .slots = {}, .tasks = {}};
    const std::string prefix = graph_.segments[segment].name + ".";
    for (const auto& [place, seen] : forward_[segment]->parameters) {
      const TensorId parameter = facts.tensors[place];
      if (graph_.gradient_of[parameter] < 0 || !stepped.insert(parameter).second) continue;
      const model::Tensor& tensor = graph_.tensors[parameter];
      const Bytes bytes = local_bytes(tensor, parameters.at(parameter), grids_[stage]);
      const std::string name = tensor.name.starts_with(prefix) ? tensor.name.substr(prefix.size()) : tensor.name;
      block.slots.push_back({name, place, bytes, Category::parameters});
      Task task{};
      task.name = name + ".step";
      task.work = optimizer_kernel(bytes / model::size_of(tensor.type), stack_);
      task.reads = task.writes = {static_cast<int>(block.slots.size()) - 1};
      task.synchronizations = stack_.optimizer.synchronizations;
      block.tasks.push_back(std::move(task));
    }
    return block;
  }

  void add_residents(int stage, const std::map<TensorId, Layout>& parameters) {
    for (const auto& [parameter, layout] : parameters) {
      const model::Tensor& tensor = graph_.tensors[parameter];
      const Bytes bytes = local_bytes(tensor, layout, grids_[stage]);
      sequence_.residents.push_back({Category::parameters, bytes});
      if (graph_.gradient_of[parameter] < 0) continue;
      sequence_.residents.push_back({Category::gradients, bytes});
      const double elements = bytes / model::size_of(tensor.type);
      for (const auto& [name, size] : stack_.optimizer.states) {
        sequence_.residents.push_back({Category::optimizer_states, elements * size});
      }
    }
  }

  const Plan& plan_;
  const cost::Stack& stack_;
  const model::Graph& graph_;
  std::vector<SegmentFacts> facts_;
  std::vector<int> stage_of_;  ///< by segment
  std::vector<Grid> grids_;    ///< by stage
  int device_count_ = 0;
  Groups* groups_ = nullptr;
  Program program_;
  std::map<std::string, std::unique_ptr<Registered>> blocks_;
  std::map<TensorId, Border> borders_;
  std::map<int, const LoweredBlock*> forward_, backward_;  ///< by segment
  std::map<int, int> forward_id_, backward_id_;            ///< their numbers in the program
  // The sequence under construction:
  Sequence sequence_;
  std::map<TensorId, Written> written_;
  std::map<int, int> last_backward_call_;
  std::vector<Bucket> buckets_;
};

}  // namespace

Program lower(const Plan& plan, const cost::Stack& stack) { return Lowering(plan, stack).run(); }

}  // namespace stratagem::strategies
