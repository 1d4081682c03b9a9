// Walks the cells of a stage and notes which call wrote what, so that later calls can wait for it.
#include "strategies/lower/sequence.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/lower/optimizer.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// Where a tensor was last written in the sequence under construction.
struct Written {
  int call;
  int task;
};

class SequenceBuilder {
 public:
  explicit SequenceBuilder(const SequenceContext& context, int stage)
      : c_(context),
        stage_(stage),
        grid_(context.stages.grid(stage)),
        buckets_(gradient_buckets(context.plan, context.stages, context.blocks, stage)) {}

  Sequence build(const std::vector<Cell>& cells) {
    const auto last_backward = std::find_if(cells.rbegin(), cells.rend(), [](const Cell& cell) {
      return cell.pass == CellPass::backward;
    });
    for (const Cell& cell : cells) {
      if (cell.pass == CellPass::forward) {
        add_forward(cell);
      } else {
        add_backward(cell, cell == *last_backward);
      }
    }
    reduce_after(-1);
    reduce_shared_parameters();
    add_steps();
    sequence_.residents = resident_buffers(c_.plan, c_.stack, c_.stages, c_.blocks, stage_);
    return std::move(sequence_);
  }

 private:
  [[nodiscard]] Stream stream_of(const Written& written) const {
    return c_.blocks[sequence_.calls[written.call].block].tasks[written.task].stream;
  }

  int add_call(int block, int segment, const Cell& cell) {
    sequence_.calls.push_back({.block = block, .segment = segment, .cell = cell, .waits = {}});
    return static_cast<int>(sequence_.calls.size()) - 1;
  }

  /// Makes the first readers of a border tensor wait for the task that wrote it on another stream.
  void connect(int call, const SegmentFacts& facts, const LoweredBlock& lowered, TensorId tensor) {
    const auto written = written_.find(tensor);
    const auto readers = lowered.first_readers.find(facts.place.at(tensor));
    if (written == written_.end() || readers == lowered.first_readers.end()) return;
    const Stream from = stream_of(written->second);
    for (const auto& [stream, task] : readers->second) {
      if (stream == from) continue;
      sequence_.calls[call].waits.push_back({task, written->second.call, written->second.task});
    }
  }

  void add_segment(int segment, const Cell& cell, const NumberedBlock& block,
                   const std::vector<TensorId>& in, const std::vector<TensorId>& out) {
    if (block.lowered.block.tasks.empty()) return;  // nothing to train here or before
    const SegmentFacts& facts = c_.stages.facts(segment);
    const LoweredBlock& lowered = block.lowered;
    const int call = add_call(block.id, segment, cell);
    for (const TensorId tensor : in) connect(call, facts, lowered, tensor);
    for (const TensorId tensor : out) {
      const auto writer = lowered.last_writer.find(facts.place.at(tensor));
      if (writer != lowered.last_writer.end()) written_[tensor] = {call, writer->second};
    }
  }

  void add_forward(const Cell& cell) {
    for (const int segment : c_.plan.stages[stage_]) {
      const SegmentFacts& facts = c_.stages.facts(segment);
      for (const TensorId tensor : facts.activations_in) {
        const int from = c_.stages.of(c_.stages.producer(tensor));
        if (from != stage_) transfer(tensor, from, stage_, cell, Stream::receive_forward);
      }
      add_segment(segment, cell, c_.blocks.forward(segment), facts.activations_in,
                  facts.activations_out);
      for (const TensorId tensor : facts.activations_out) {
        const int to = c_.stages.of(c_.stages.reader(tensor));
        if (to != stage_) transfer(tensor, stage_, to, cell, Stream::send_forward);
      }
    }
  }

  /// After the last backward cell of the iteration, weight gradients are complete.
  void add_backward(const Cell& cell, bool last) {
    const std::vector<int>& segments = c_.plan.stages[stage_];
    const std::vector<TensorId>& gradient_of = c_.plan.graph().gradient_of;
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      const SegmentFacts& facts = c_.stages.facts(*segment);
      for (const TensorId tensor : facts.activations_out) {
        const int from = c_.stages.of(c_.stages.reader(tensor));
        if (from == stage_ || gradient_of[tensor] < 0) continue;
        transfer(gradient_of[tensor], from, stage_, cell, Stream::receive_backward);
      }
      add_segment(*segment, cell, c_.blocks.backward(*segment), facts.gradients_in,
                  facts.gradients_out);
      for (const TensorId tensor : facts.activations_in) {
        const int to = c_.stages.of(c_.stages.producer(tensor));
        if (to == stage_ || gradient_of[tensor] < 0) continue;
        transfer(gradient_of[tensor], stage_, to, cell, Stream::send_backward);
      }
      if (last && c_.plan.gradients.overlap) reduce_after(*segment);
    }
  }

  /// One half of a transfer between stages, on the stage whose sequence is under construction.
  void transfer(TensorId tensor, int from, int to, const Cell& cell, Stream stream) {
    const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
    const Border& border = c_.blocks.border(tensor);
    const model::Tensor& t = c_.plan.graph().tensors[tensor];
    const int group = c_.groups.between(c_.stages.grid(from), c_.stages.grid(to));
    const std::string key = "transfer " + std::to_string(tensor) + (sends ? "s" : "r");
    const int block =
        c_.blocks
            .shared(key,
                    [&] {
                      const Bytes bytes = local_bytes(t, border.layout, c_.stages.grid(from));
                      LoweredBlock lowered;
                      lowered.block = {.name = (sends ? "send " : "receive ") + t.name,
                                       .slots = {{t.name, tensor, bytes,
                                                  sends ? Category::temporaries : border.category}},
                                       .tasks = {Task{}}};
                      Task& task = lowered.block.tasks.front();
                      task.name = lowered.block.name;
                      task.work = Collective{
                          .kind = cost::CollectiveKind::send, .group = group, .payload = bytes};
                      task.stream = stream;
                      (sends ? task.reads : task.writes) = {0};
                      (sends ? task.deaths : task.births) = {0};
                      return lowered;
                    })
            .id;
    const int call = add_call(block, -1, cell);
    if (!sends) {
      written_[tensor] = {call, 0};
    } else if (const auto written = written_.find(tensor); written != written_.end()) {
      sequence_.calls[call].waits.push_back({0, written->second.call, written->second.task});
    }
  }

  /// Calls for every bucket that the given segment completes; for all that are left if it is -1.
  void reduce_after(int segment) {
    for (Bucket& bucket : buckets_) {
      if (bucket.gradients.empty() || (segment >= 0 && bucket.after != segment)) continue;
      reduce(bucket, c_.groups.along(grid_, bucket.axes), last_computation());
      bucket.gradients.clear();
    }
  }

  /// The last task on the compute stream so far.
  [[nodiscard]] Written last_computation() const {
    for (int call = static_cast<int>(sequence_.calls.size()) - 1; call >= 0; --call) {
      const std::vector<Task>& tasks = c_.blocks[sequence_.calls[call].block].tasks;
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
    task.work = Collective{
        .kind = cost::CollectiveKind::all_reduce, .group = group, .payload = bucket.bytes};
    task.stream = Stream::gradient_communication;
    for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
      const TensorId gradient = bucket.gradients[i];
      task.reads.push_back(static_cast<int>(i));
      block.slots.push_back(
          {c_.plan.graph().tensors[gradient].name, gradient, bucket.sizes[i], Category::gradients});
    }
    task.writes = task.reads;
    const int call = add_call(c_.blocks.add(std::move(block)), -1, {});
    sequence_.calls[call].waits.push_back({0, after.call, after.task});
  }

  /// A parameter that two stages read (tied embeddings) has a partial gradient on each.
  void reduce_shared_parameters() {
    const ParameterLayouts mine = parameter_layouts(c_.plan, c_.stages, c_.blocks, stage_);
    for (int other = 0; other < c_.stages.count(); ++other) {
      if (other == stage_) continue;
      const ParameterLayouts theirs = parameter_layouts(c_.plan, c_.stages, c_.blocks, other);
      Bucket bucket;
      for (const auto& [parameter, layout] : mine) {
        const TensorId gradient = c_.plan.graph().gradient_of[parameter];
        if (gradient < 0 || !theirs.contains(parameter)) continue;
        if (!shared_.insert(parameter).second) {
          throw InputError("", "/strategy", "a parameter to be read in at most two stages",
                           c_.plan.graph().tensors[parameter].name);
        }
        bucket.gradients.push_back(gradient);
        bucket.sizes.push_back(local_bytes(c_.plan.graph().tensors[parameter], layout, grid_));
        bucket.bytes += bucket.sizes.back();
      }
      if (bucket.gradients.empty()) continue;
      const auto [first, second] = std::minmax(stage_, other);
      const int group = c_.groups.between(c_.stages.grid(first), c_.stages.grid(second));
      reduce(bucket, group, last_computation());
    }
  }

  /// Optimizer steps, the first of which waits for the last reduction.
  void add_steps() {
    const int end_of_reductions = static_cast<int>(sequence_.calls.size());
    bool first = true;
    for (StepBlock& step : step_blocks(c_.plan, c_.stack, c_.stages, c_.blocks, stage_)) {
      const int id = c_.blocks
                         .shared(step.key,
                                 [&] {
                                   LoweredBlock lowered;
                                   lowered.block = std::move(step.block);
                                   return lowered;
                                 })
                         .id;
      const int call = add_call(id, step.segment, {});
      if (std::exchange(first, false)) wait_for_reductions(call, end_of_reductions);
    }
  }

  void wait_for_reductions(int call, int end) {
    for (int earlier = end - 1; earlier >= 0; --earlier) {
      if (c_.blocks[sequence_.calls[earlier].block].tasks[0].stream ==
          Stream::gradient_communication) {
        sequence_.calls[call].waits.push_back({0, earlier, 0});
        return;  // earlier ones are on the same stream
      }
    }
  }

  const SequenceContext& c_;
  int stage_;
  const Grid& grid_;
  Sequence sequence_;
  std::map<TensorId, Written> written_;
  std::vector<Bucket> buckets_;
  std::set<TensorId> shared_;  ///< parameters whose gradients were summed with another stage's
};

}  // namespace

Sequence build_sequence(const SequenceContext& context, int stage, const std::vector<Cell>& cells) {
  return SequenceBuilder(context, stage).build(cells);
}

}  // namespace stratagem::strategies
