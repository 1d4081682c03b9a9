// A second reading of what a program promises: buffers are allocated once, complete when used, and
// freed in the end.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering {

/// By stream: how many of its tasks have ended for sure.
using Clock = std::map<program::Stream, int>;

/// One execution of a task: the n-th of its stream, with what has ended for sure when it begins.
struct Moment {
  program::Stream stream = program::Stream::compute;
  int n = 0;
  Clock before;
};

inline bool follows(const Moment& later, const Moment& earlier) {
  if (later.stream == earlier.stream) return later.n >= earlier.n;
  const auto found = later.before.find(earlier.stream);
  return found != later.before.end() && found->second >= earlier.n;
}

/// A live buffer.
struct Life {
  Bytes bytes;
  program::Category category = program::Category::temporaries;
  Moment written;
  std::vector<Moment> used;
};

/// A tensor of a micro-batch, in one of the layouts that it has within a block: the n-th
/// allocation.
using Buffer = std::tuple<model::TensorId, int, int>;

/// Plays one sequence call by call, as a second implementation of what the header of the program
/// says: streams are queues, waits join them, slots are bound by the call's segment and
/// micro-batch.
class Replay {
 public:
  Replay(const program::Program& program, int sequence)
      : program_(program), calls_(program.sequences[sequence].calls) {
    for (std::size_t c = 0; c < calls_.size(); ++c) play(static_cast<int>(c));
  }

  [[nodiscard]] const std::map<Buffer, Life>& alive() const { return alive_; }
  [[nodiscard]] const std::map<program::Category, double>& balance() const { return balance_; }
  [[nodiscard]] const std::vector<std::vector<Moment>>& moments() const { return moments_; }
  [[nodiscard]] int allocations() const { return allocations_; }
  /// How many micro-batches' buffers of one tensor were alive at the same time.
  [[nodiscard]] int most(model::TensorId tensor) const { return most_.at(tensor); }

 private:
  /// Slices of one micro-batch have buffers of their own.
  static int moment_of(const placement::Cell& cell) { return cell.micro_batch * 64 + cell.slice; }

  void play(int c) {
    const program::Call& call = calls_[c];
    const program::Block& block = program_.blocks[call.block];
    moments_.emplace_back();
    allocated_here_.clear();
    allocations_before_ = allocations_;
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const program::Task& task = block.tasks[t];
      INFO("call " << c << ", " << block.name << ", " << task.name);
      Moment now{.stream = task.stream, .n = ++count_[task.stream], .before = ended_[task.stream]};
      const auto join = [&](const Moment& earlier) {
        for (const auto& [stream, n] : earlier.before)
          now.before[stream] = std::max(now.before[stream], n);
        now.before[earlier.stream] = std::max(now.before[earlier.stream], earlier.n);
      };
      for (const int wait : task.waits) join(moments_[c][wait]);
      for (const program::Wait& wait : call.waits) {
        if (wait.task == static_cast<int>(t)) join(moments_[wait.of_call][wait.of_task]);
      }
      ended_[task.stream] = now.before;
      moments_[c].push_back(now);
      run(call, block, task, now);
    }
    for (auto one = alive_.begin(); one != alive_.end();
         ++one) {  // later calls find it by its name
      const auto next = std::next(one);
      CHECK((next == alive_.end() || named(next->first) != named(one->first)));
    }
  }

  static std::pair<model::TensorId, int> named(const Buffer& buffer) {
    return {std::get<0>(buffer), std::get<1>(buffer)};
  }

  /// The buffer that a slot means: allocated in this call, or else the one that earlier calls left.
  [[nodiscard]] Buffer buffer(const program::Call& call, int slot) const {
    const int place = program_.blocks[call.block].slots[slot].tensor;
    const model::TensorId tensor =
        call.segment < 0 ? place : program_.segment_tensors[call.segment][place];
    if (const auto here = allocated_here_.find(slot); here != allocated_here_.end())
      return {tensor, moment_of(call.cell), here->second};
    const auto left = alive_.lower_bound({tensor, moment_of(call.cell), 0});
    REQUIRE(left != alive_.end());
    REQUIRE(named(left->first) == std::make_pair(tensor, moment_of(call.cell)));
    REQUIRE(std::get<2>(left->first) <= allocations_before_);
    return left->first;
  }

  void run(const program::Call& call, const program::Block& block, const program::Task& task,
           const Moment& now) {
    const auto key = [&](int slot) { return buffer(call, slot); };
    const auto is_resident = [&](int slot) {
      return program::is_resident(block.slots[slot].category);
    };
    for (const int slot : task.allocates) {
      INFO(block.slots[slot].name);
      CHECK_FALSE(is_resident(slot));
      CHECK(allocated_here_.emplace(slot, ++allocations_).second);
      const model::TensorId tensor = std::get<0>(key(slot));
      most_[tensor] = std::max(most_[tensor], ++now_alive_[tensor]);
      alive_[key(slot)] = {
          .bytes = block.slots[slot].bytes, .category = block.slots[slot].category, .written = now};
      balance_[block.slots[slot].category] += block.slots[slot].bytes.value;
    }
    for (const int slot : task.reads) {
      if (is_resident(slot)) continue;
      INFO("reads " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      Life& life = alive_.at(key(slot));
      CHECK(follows(now, life.written));
      CHECK(life.bytes == block.slots[slot].bytes);
      life.used.push_back(now);
    }
    for (const int slot : task.writes) {
      if (is_resident(slot)) continue;
      INFO("writes " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      Life& life = alive_.at(key(slot));
      for (const Moment& use : life.used) CHECK(follows(now, use));
      CHECK(follows(now, life.written));
      life.written = now;
    }
    for (const int slot : task.frees) {
      INFO("frees " << block.slots[slot].name);
      REQUIRE(alive_.count(key(slot)) == 1);
      const Life& life = alive_.at(key(slot));
      for (const Moment& use : life.used) CHECK(follows(now, use));
      CHECK(follows(now, life.written));
      CHECK(life.bytes == block.slots[slot].bytes);
      CHECK(life.category == block.slots[slot].category);
      balance_[block.slots[slot].category] -= block.slots[slot].bytes.value;
      --now_alive_[std::get<0>(key(slot))];
      alive_.erase(key(slot));
    }
  }

  const program::Program& program_;
  const program::Calls& calls_;
  std::map<program::Stream, int> count_;
  std::map<program::Stream, Clock> ended_;
  std::vector<std::vector<Moment>> moments_;  ///< by call and task
  std::map<Buffer, Life> alive_;
  /// By slot of the current call: the number of its allocation.
  std::map<int, int> allocated_here_;
  int allocations_before_ = 0;  ///< when the current call began
  std::map<program::Category, double> balance_;
  std::map<model::TensorId, int> now_alive_, most_;
  int allocations_ = 0;
};

/// Every sum of a gradient and every step follows all weight gradients that go into it. How many of
/// these there are.
inline std::size_t check_gradients(const model::Graph& graph, const program::Program& program,
                                   int sequence, const Replay& replay) {
  const program::Calls& calls = program.sequences[sequence].calls;
  // By gradient of a parameter; a sum's micro-batch is -1.
  std::map<model::TensorId, std::vector<std::pair<int, Moment>>> written;
  const auto note = [&](const program::Call& call, std::size_t c) {
    const program::Block& block = program.blocks[call.block];
    const std::string prefix = call.segment < 0 ? "" : graph.segments[call.segment].name + ".";
    for (const model::OpId id : graph.segments[call.segment].backward) {
      const model::Operator& op = graph.operators[id];
      if (op.pass != model::Pass::weight_gradient) continue;
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        if (prefix + block.tasks[t].name == op.name)
          written[op.outputs[0]].emplace_back(call.cell.micro_batch, replay.moments()[c][t]);
      }
    }
  };
  for (std::size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].segment >= 0 && calls[c].cell.pass == placement::CellPass::backward)
      note(calls[c], c);
  }
  const std::size_t computed = written.size();
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const program::Block& block = program.blocks[calls[c].block];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const program::Task& task = block.tasks[t];
      const bool sums = task.stream == program::Stream::gradient_communication;
      if (!sums && !steps(task)) continue;
      for (const int slot : task.reads) {
        const int tensor = block.slots[slot].tensor;
        const model::TensorId id =
            calls[c].segment < 0 ? tensor : program.segment_tensors[calls[c].segment][tensor];
        const model::TensorId gradient =
            graph.tensors[id].role == model::Role::parameter ? graph.gradient_of[id] : id;
        INFO("call " << c << ", " << task.name << ", " << graph.tensors[gradient].name);
        REQUIRE(written.count(gradient) == 1);
        const bool of_one = block.slots[slot].category == program::Category::whole_gradients;
        for (const auto& [micro_batch, earlier] : written[gradient]) {
          if (of_one && micro_batch != calls[c].cell.micro_batch) continue;
          CHECK(follows(replay.moments()[c][t], earlier));
        }
        if (sums) written[gradient].emplace_back(-1, replay.moments()[c][t]);
      }
    }
  }
  return computed;
}

inline void check_program(const model::Graph& graph, const program::Program& program) {
  std::size_t gradients = 0;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    INFO("sequence " << s);
    const Replay replay(program, static_cast<int>(s));
    CHECK(replay.alive().empty());
    for (const auto& [category, bytes] : replay.balance()) {
      INFO(program::category_names[static_cast<std::size_t>(category)]);
      CHECK(bytes == 0);
    }
    CHECK(replay.allocations() > 0);
    gradients += check_gradients(graph, program, static_cast<int>(s), replay);
  }
  CHECK(gradients > 0);
}

}  // namespace stratagem::lowering
