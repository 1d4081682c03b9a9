// Makes one task per device of a redistribution step.
#include "lowering/blocks/moves.hpp"

#include <algorithm>
#include <utility>

#include "placement/local_part.hpp"

namespace stratagem::lowering {

using placement::Mask;
using program::Action;
using program::Operation;
using program::Stream;

namespace {

class Appending {
 public:
  Appending(const Move& move, std::map<int, DeviceBlock>& blocks, Groups& groups,
            const model::Tensor& tensor)
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

 private:
  static std::vector<int> ranks_of(const std::vector<Share>& group) {
    std::vector<int> ranks;
    for (const Share& share : group) ranks.push_back(share.device);
    return ranks;
  }

  void local(StepKind kind, const Share& share) {
    const bool copied = move_.copied.contains({share.device, share.holds});
    if (kind == StepKind::select && !share.reads.empty() && !copied) {
      blocks_.at(share.device).view(move_.tensor.id, share.reads.front(), share.holds);
      return;
    }
    cost::Kernel kernel{.kind = cost::KernelKind::elementwise, .type = tensor_.type};
    kernel.traffic = bytes_of(tensor_, share.holds);
    for (const Mask& mask : share.reads)
      kernel.traffic += std::min(bytes_of(tensor_, mask), bytes_of(tensor_, share.holds));
    push(kind, kernel, Stream::compute, share, {share});
  }

  void add_group(StepKind kind, const std::vector<Share>& group, int number, bool directed) {
    Bytes payload;  // the whole of what the collective is about (cost/ring.hpp)
    for (const Share& share : group) {
      payload = std::max(payload, bytes_of(tensor_, share.holds));
      for (const Mask& mask : share.reads) payload = std::max(payload, bytes_of(tensor_, mask));
    }
    const program::Collective work{
        .kind = collective(kind), .combine = move_.combine, .group = number, .payload = payload};
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Stream out = move_.backward ? Stream::send_backward : Stream::send_forward;
      const Stream in = move_.backward ? Stream::receive_backward : Stream::receive_forward;
      push(kind, work, !directed ? Stream::communication : i == 0 ? out : in, group[i], group);
    }
  }

  void push(StepKind kind, std::variant<cost::Kernel, program::Collective> work, Stream stream,
            const Share& share, const std::vector<Share>& group) {
    DeviceBlock& block = blocks_.at(share.device);
    program::Task task{};
    task.name = move_.tensor.name + " " + to_text(kind);
    task.work = std::move(work);
    task.stream = stream;
    task.recomputed = move_.recomputed;
    if (move_.held && program::transfers(stream) && !share.reads.empty())
      block.hold_transfers(move_.tensor.id, share.reads.front());
    Operation operation = meaning(kind);
    for (const Mask& mask : share.reads)
      operation.inputs.push_back(block.read(task, move_.tensor.id, mask));
    if (move_.blocking) block.follow_computation(task);
    const bool keeps = share.reads.size() == 1 && share.reads.front() == share.holds;
    if (kind == StepKind::all_reduce) {
      operation.outputs = {
          block.overwrite(task, move_.tensor.id, share.reads.front(), share.holds)};
    } else if (!keeps) {
      operation.outputs = {block.write(task, move_.tensor, share.holds, move_.category)};
    }
    task.operations = {with_members(std::move(operation), share, group)};
    block.push(std::move(task));
  }

  /// What a step does to values, yet without its operands.
  [[nodiscard]] Operation meaning(StepKind kind) const {
    if (kind == StepKind::send || kind == StepKind::broadcast) return {.action = Action::transfer};
    if (communicates(kind)) return {.action = Action::convert};
    return {.action = Action::join, .adds = kind == StepKind::sum, .combine = move_.combine};
  }

  /// Of a selection only what is selected is read; of a collective it matters what all members
  /// have.
  static Operation with_members(Operation operation, const Share& share,
                                const std::vector<Share>& group) {
    if (operation.action == Action::join && operation.inputs.size() == 1)
      operation.inputs.front().masks = {share.holds};
    if (operation.action != Action::convert) return operation;
    operation.inputs.front().masks.clear();
    operation.outputs.front().masks.clear();
    for (const Share& member : group) {
      operation.inputs.front().masks.push_back(member.reads.front());
      operation.outputs.front().masks.push_back(member.holds);
    }
    return operation;
  }

  const Move& move_;
  std::map<int, DeviceBlock>& blocks_;
  Groups& groups_;
  const model::Tensor& tensor_;
};

}  // namespace

void append(const Redistribution& redistribution, const Move& move,
            std::map<int, DeviceBlock>& blocks, Groups& groups, const model::Tensor& tensor) {
  Appending appending(move, blocks, groups, tensor);
  for (const Step& step : redistribution.steps) appending.add(step);
}

}  // namespace stratagem::lowering
