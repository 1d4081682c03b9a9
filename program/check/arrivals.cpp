// Goes through every queue of receives, and compares when the cells begin that read the messages.
#include "program/check/arrivals.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::program {
namespace {

bool receives(const Task& task) {
  return task.stream == Stream::receive_forward || task.stream == Stream::receive_backward;
}

/// Calls that compute. Copies from the host or other devices, and gathers of weights, are for a
/// cell but run ahead of it.
bool computes(const Block& block) {
  const auto on = [&](Stream stream) {
    return std::ranges::find(block.tasks, stream, &Task::stream) != block.tasks.end();
  };
  return on(Stream::compute) && !on(Stream::parameter_communication);
}

/// A cell, and the lag of the round that runs it.
using Key = std::pair<int, placement::Cell>;
Key key(const Call& call) { return {call.lag, call.cell}; }

class MessageOrder {
 public:
  MessageOrder(const Program& program, const Rendezvous& rendezvous)
      : program_(program), rendezvous_(rendezvous) {
    for (const Block& block : program.blocks) {
      computes_.push_back(computes(block));
      std::vector<std::size_t>& tasks = receives_.emplace_back();
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        if (receives(block.tasks[t])) tasks.push_back(t);
      }
    }
  }

  void check(int sequence) const {
    const Calls& calls = program_.sequences[sequence].calls;
    std::map<Key, std::size_t> begins;  // of what is computed
    std::size_t number = 0;
    for (const Call& call : calls) {
      if (call.segment >= 0 && computes_[call.block]) begins.try_emplace(key(call), number);
      ++number;
    }
    std::map<std::pair<Stream, int>, std::pair<TaskOfCall, std::size_t>> latest;  // by queue
    number = 0;
    for (const Call& call : calls) {
      const std::size_t c = number++;
      const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
      for (const std::size_t t : receives_[call.block]) {
        const auto begin = begins.find(key(call));
        if (begin == begins.end()) continue;  // for another device, which will take it back
        const int group = std::get<Collective>(tasks[t].work).group;
        const TaskOfCall here{static_cast<int>(c), static_cast<int>(t)};
        const auto [last, first] =
            latest.try_emplace({tasks[t].stream, group}, std::pair(here, begin->second));
        if (begin->second < last->second.second) refuse(sequence, group, last->second.first, here);
        last->second = {here, begin->second};
      }
    }
  }

 private:
  /// The receive `before` precedes the receive `after`, but the cell that reads `after` runs first.
  [[noreturn]] void refuse(int sequence, int group, const TaskOfCall& before,
                           const TaskOfCall& after) const {
    const Calls& calls = program_.sequences[sequence].calls;
    const std::string first = to_text(calls[before.call].cell),
                      second = to_text(calls[after.call].cell);
    const auto device =
        static_cast<int>(std::ranges::find(program_.devices, sequence, &Device::sequence) -
                         program_.devices.begin());
    throw InputError(
        "", "",
        "a stage to take messages in the order in which they are sent, as NCCL matches "
        "them: an op-order with " +
            first + " before " + second + ", or one that sends them the other way round",
        sent(device, group, before) + " before that for " + second + ", and device " +
            std::to_string(device) + " runs " + second + " before " + first);
  }

  /// The send that a receive of a device matches, in words.
  [[nodiscard]] std::string sent(int device, int group, const TaskOfCall& receive) const {
    const Device& receiver = program_.devices[device];
    const int endpoint = receiver.sequence * rendezvous_.groups() + group;
    const std::vector<TaskOfCall>& posted = rendezvous_.posted(endpoint);
    const auto is_it = [&](const TaskOfCall& place) {
      return place.call == receive.call && place.task == receive.task;
    };
    const auto k = std::ranges::find_if(posted, is_it) - posted.begin();
    const int source = program_.communicators[receiver.groups[group]].ranks.front();
    for (const Member& member : rendezvous_.communicators()[receiver.groups[group]]) {
      if (member.device != source) continue;
      const Sequence& theirs = program_.sequences[rendezvous_.sequence(member.endpoint)];
      return "device " + std::to_string(source) + " at " +
             describe(program_, theirs,
                      rendezvous_.posted(member.endpoint)[static_cast<std::size_t>(k)]);
    }
    throw BrokenPromise("a communicator's devices are its members");
  }

  const Program& program_;
  const Rendezvous& rendezvous_;
  std::vector<bool> computes_;                      ///< by block
  std::vector<std::vector<std::size_t>> receives_;  ///< by block: its tasks that do
};

}  // namespace

void check_arrivals(const Program& program, const Rendezvous& rendezvous) {
  const MessageOrder order(program, rendezvous);
  for (std::size_t s = 0; s < program.sequences.size(); ++s) order.check(static_cast<int>(s));
}

}  // namespace stratagem::program
