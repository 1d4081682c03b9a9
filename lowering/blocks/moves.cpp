// Makes one task per block of a redistribution step.
#include "lowering/blocks/moves.hpp"

#include <algorithm>
#include <utility>

#include "lowering/stack/collectives_beside.hpp"
#include "lowering/stack/pieces.hpp"

namespace stratagem::lowering {

using placement::Mask;
using placement::Part;
using program::Action;
using program::Operation;
using program::Stream;

namespace {

/// What a block reads in a step, and what it holds afterwards.
struct Turn {
  int device = 0;
  std::vector<Part> reads;
  Part holds;
};

Turn turn_of(const Share& share) {
  Turn turn{share.device, {}, {.mask = share.holds}};
  for (const Mask& mask : share.reads) turn.reads.push_back({.mask = mask});
  return turn;
}

class Appending {
 public:
  Appending(const Move& move, BlockDrafts& blocks, Groups& groups, const model::Tensor& tensor)
      : move_(move), blocks_(blocks), groups_(groups), tensor_(tensor) {}

  void add(const Step& step) {
    if (!communicates(step.kind)) {
      for (const std::vector<Share>& group : step.groups) {
        for (const Share& share : group) local(step.kind, share);
      }
      return;
    }
    const bool directed = step.kind == StepKind::send || step.kind == StepKind::broadcast;
    std::vector<std::vector<int>> all;
    for (const std::vector<Share>& group : step.groups) all.push_back(ranks_of(group));
    for (std::size_t g = 0; g < step.groups.size(); ++g) {
      // A device may send to several others: every message has a group of its own.
      const int number =
          directed ? groups_.of({all[g]}, move_.purpose) : groups_.of(all, move_.purpose);
      add_group(step.kind, step.groups[g], number, directed);
    }
  }

  void add(const placement::Conversion& step, const placement::Layout& from,
           const placement::Grid& grid) {
    const Turn turn{grid.first_device, {Part{from}}, Part{after(from, step)}};
    if (!step.communicates()) {
      blocks_.at(turn.device).view(move_.tensor.id, turn.reads.front(), turn.holds);
      return;
    }
    const Bytes payload =
        std::max(bytes_of(tensor_, turn.reads.front(), grid), bytes_of(tensor_, turn.holds, grid));
    BlockDraft& block = blocks_.at(turn.device);
    const bool of_tensor_ranks = move_.issued_by != nullptr && step.axes.size() == 1 &&
                                 are_tensor_ranks(grid.axes[step.axes[0]]);
    if (of_tensor_ranks) cut(step, grid.axes[step.axes[0]].size, block);
    push(kind_of(step), collective_of(kind_of(step), groups_.along(grid, step.axes), payload),
         stream_of(kind_of(step)), turn, block);
    const bool gathers = of_tensor_ranks && kind_of(step) == StepKind::all_gather;
    if (gathers && !cost::rules_of<cost::GatherBuffers>(*move_.issued_by).empty())
      block.lies_apart(move_.tensor.id, turn.holds);
  }

 private:
  static Stream stream_of(StepKind kind) {
    return kind == StepKind::all_to_all ? Stream::exchange : Stream::communication;
  }

  static std::vector<int> ranks_of(const std::vector<Share>& group) {
    std::vector<int> ranks;
    for (const Share& share : group) ranks.push_back(share.device);
    return ranks;
  }

  [[nodiscard]] program::Collective collective_of(StepKind kind, int group, Bytes payload) const {
    return {.kind = collective(kind), .combine = move_.combine, .group = group, .payload = payload};
  }

  /// Notes that a collective of tensor ranks, about to be added, is cut with its product.
  void cut(const placement::Conversion& step, int ranks, BlockDraft& block) const {
    const auto how = cut_of(*move_.issued_by, step.collective(), move_.backward, ranks);
    if (!how) return;
    const bool gathers = how->way != Cut::Way::scatter;
    if (!gathers || block.multiplies_rows(move_.tensor.id, step.from.dim)) block.cut(*how);
  }

  /// The block in which a device receives, and goes on from there.
  [[nodiscard]] BlockDraft& block_behind(int device) const {
    if (move_.arriving != nullptr) {
      if (const auto own = move_.arriving->find(device); own != move_.arriving->end())
        return own->second;
    }
    return blocks_.at(device);
  }

  void local(StepKind kind, const Share& share) {
    const bool copied = move_.copied.contains({share.device, share.holds});
    const Turn turn = turn_of(share);
    BlockDraft& behind = block_behind(share.device);
    if (kind == StepKind::select && !share.reads.empty()) {
      const auto sending = blocks_.find(share.device);
      if (sending != blocks_.end() && &sending->second != &behind)
        sending->second.view(move_.tensor.id, turn.reads.front(), turn.holds);
      if (!copied) return behind.view(move_.tensor.id, turn.reads.front(), turn.holds);
    }
    cost::Kernel kernel{.kind = cost::KernelKind::elementwise, .type = tensor_.type};
    kernel.traffic = bytes_of(tensor_, share.holds);
    for (const Mask& mask : share.reads)
      kernel.traffic += std::min(bytes_of(tensor_, mask), bytes_of(tensor_, share.holds));
    push(kind, kernel, Stream::compute, turn, behind);
  }

  void add_group(StepKind kind, const std::vector<Share>& group, int number, bool directed) {
    Bytes payload;  // the whole of what the collective is about (cost/ring.hpp)
    for (const Share& share : group) {
      payload = std::max(payload, bytes_of(tensor_, share.holds));
      for (const Mask& mask : share.reads) payload = std::max(payload, bytes_of(tensor_, mask));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Stream out = move_.backward ? Stream::send_backward : Stream::send_forward;
      const Stream in = move_.backward ? Stream::receive_backward : Stream::receive_forward;
      const bool sends = directed && i == 0;
      push(kind, collective_of(kind, number, payload),
           !directed ? stream_of(kind)
           : sends   ? out
                     : in,
           turn_of(group[i]), sends ? blocks_.at(group[i].device) : block_behind(group[i].device),
           group);
    }
  }

  /// `members`: of a group of devices that each have a block.
  void push(StepKind kind, std::variant<cost::Kernel, program::Collective> work, Stream stream,
            const Turn& turn, BlockDraft& block, const std::vector<Share>& members = {}) {
    program::Task task{};
    task.name = move_.tensor.name + " " + to_text(kind);
    task.work = work;
    task.stream = stream;
    task.recomputed = move_.recomputed;
    if (move_.issued_by != nullptr && program::transfers(stream) && !turn.reads.empty())
      block.hold_transfers(move_.tensor.id, turn.reads.front());
    Operation operation = meaning(kind);
    for (const Part& part : turn.reads)
      operation.inputs.push_back(block.read(task, move_.tensor.id, part));
    issue(task, kind, block);
    const bool keeps = turn.reads.size() == 1 && turn.reads.front() == turn.holds;
    if (kind == StepKind::all_reduce) {
      operation.outputs = {block.overwrite(task, move_.tensor.id, turn.reads.front(), turn.holds)};
    } else if (!keeps) {
      operation.outputs = {block.write(task, move_.tensor, turn.holds, move_.category)};
    }
    task.operations = {with_members(std::move(operation), turn, members)};
    block.push(std::move(task));
  }

  /// A collective of gradients is part of the operator that wrote the gradient, one of activations
  /// of the operator that reads them.
  void issue(program::Task& task, StepKind kind, const BlockDraft& block) const {
    if (move_.issued_by == nullptr || !communicates(kind)) return;
    const int slot = task.reads.empty() ? -1 : task.reads.front();
    const model::OpId of = move_.backward ? block.writer_of(slot) : block.running();
    block.follow_computation(task, slot, of,
                             beside(*move_.issued_by, collective(kind), move_.backward));
  }

  /// What a step does to values, yet without its operands.
  [[nodiscard]] Operation meaning(StepKind kind) const {
    if (kind == StepKind::send || kind == StepKind::broadcast) return {.action = Action::transfer};
    if (communicates(kind)) return {.action = Action::convert};
    return {.action = Action::join, .adds = kind == StepKind::sum, .combine = move_.combine};
  }

  /// Of a selection only what is selected is read; of a collective it matters what all members
  /// have.
  static Operation with_members(Operation operation, const Turn& turn,
                                const std::vector<Share>& members) {
    if (operation.action == Action::join && operation.inputs.size() == 1)
      operation.inputs.front().masks = {*turn.holds.mask};
    if (operation.action != Action::convert || members.empty()) return operation;
    operation.inputs.front().masks.clear();
    operation.outputs.front().masks.clear();
    for (const Share& member : members) {
      operation.inputs.front().masks.push_back(member.reads.front());
      operation.outputs.front().masks.push_back(member.holds);
    }
    return operation;
  }

  const Move& move_;
  BlockDrafts& blocks_;
  Groups& groups_;
  const model::Tensor& tensor_;
};

}  // namespace

void append(const Redistribution& redistribution, const Move& move, BlockDrafts& blocks,
            Groups& groups, const model::Tensor& tensor) {
  Appending appending(move, blocks, groups, tensor);
  for (const Step& step : redistribution.steps) appending.add(step);
}

void append(const placement::Conversion& step, const placement::Layout& from, const Move& move,
            const placement::Grid& grid, BlockDrafts& blocks, Groups& groups,
            const model::Tensor& tensor) {
  Appending(move, blocks, groups, tensor).add(step, from, grid);
}

}  // namespace stratagem::lowering
