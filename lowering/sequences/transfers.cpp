// Posts receives in the order of the sender's cells, and brings tensors to stages on other grids.
#include "lowering/sequences/transfers.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "base/input_error.hpp"
#include "lowering/sequences/message_block.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;
using program::Stream;

void Transfers::receive_for(const ScheduledCell& of) {
  const Stream stream =
      of.cell.pass == CellPass::forward ? Stream::receive_forward : Stream::receive_backward;
  for (const Message& message : incoming(c_.plan, c_.stages, of.cell)) {
    if (!stays(message)) receive_until(message, of, stream);
  }
}

/// Posts the receive that the cell needs, and before it those of messages that its sender sends
/// earlier between the same replicas, whatever their tensors.
void Transfers::receive_until(const Message& message, const ScheduledCell& of, Stream stream) {
  Cell made_by = of.cell;
  if (message.recycled) --made_by.repeat;
  const auto wanted = std::tuple(message.from, message.to, CellTensor(message.tensor, made_by));
  if (received_.erase(wanted) > 0) return;
  const std::array connection{draft_.replica_of(message.from, of.cell),
                              draft_.replica_of(message.to, of.cell),
                              static_cast<int>(of.cell.pass), message.recycled ? 1 : 0};
  auto& [next, order] = senders_[connection];
  if (order.empty()) order = receive_order(message, of);
  while (received_.erase(wanted) == 0) {
    expects(next < order.size(), "what a cell receives is sent");
    receive_all(message, order[next++], of, stream);
  }
}

/// Posts the receives of everything that one cell of the sender sends to the replica that
/// receives a message.
void Transfers::receive_all(const Message& like, const ScheduledCell& sent, const ScheduledCell& of,
                            Stream stream) {
  ScheduledCell reader = of;
  reader.cell.micro_batch = sent.cell.micro_batch;
  reader.cell.slice = sent.cell.slice;
  reader.cell.repeat = sent.cell.repeat + (like.recycled ? 1 : 0);
  ScheduledCell here = reader;
  here.cell.repeat = sent.cell.repeat;
  here.lag = sent.lag;
  for (const Message& message : incoming(c_.plan, c_.stages, reader.cell)) {
    if (message.from != like.from || message.recycled != like.recycled) continue;
    redistributes(message) ? redistribute(message, here, false) : transfer(message, here, stream);
    received_.emplace(message.from, message.to, CellTensor(message.tensor, sent.cell));
  }
}

/// The cells that send between a message's replicas, each with the lag of the cell that reads it:
/// a message is received in the round of its reader. What lags most comes first, as in all rounds
/// together.
std::vector<ScheduledCell> Transfers::receive_order(const Message& message,
                                                    const ScheduledCell& of) const {
  std::vector<ScheduledCell> order =
      send_order(c_.plan, c_.stages, c_.order,
                 {draft_.replica(message.from, of.cell), draft_.replica(message.to, of.cell)},
                 of.cell.pass, message.recycled);
  const std::vector<ScheduledCell>& cells = c_.order.rounds[draft_.device_class()];
  for (ScheduledCell& one : order) {
    Cell reader = one.cell;
    reader.stage = of.cell.stage;
    if (message.recycled) ++reader.repeat;
    one.lag = c_.order.lag == 0 ? 0 : std::ranges::find(cells, reader, &ScheduledCell::cell)->lag;
  }
  std::ranges::stable_sort(order, std::greater<>(), &ScheduledCell::lag);
  return order;
}

void Transfers::send_from(const ScheduledCell& of) {
  const Stream stream =
      of.cell.pass == CellPass::forward ? Stream::send_forward : Stream::send_backward;
  for (const Message& message : outgoing(c_.plan, c_.stages, of.cell)) {
    if (stays(message)) continue;
    const Written last = draft_.last_computation();
    const Written* written = written_.find({message.tensor, of.cell});
    const Written made = written == nullptr ? last : *written;
    const int call =
        redistributes(message) ? redistribute(message, of, true) : transfer(message, of, stream);
    if (call < 0) continue;
    for (const int task : draft_.first_of_queues(call)) {
      draft_.wait(call, task, last);
      if (draft_.stream_of(made) != Stream::compute) draft_.wait(call, task, made);
    }
  }
}

/// The tensor of a message, the replicas between which it goes, and the slice.
std::array<int, 4> Transfers::redistribution_key(const Message& message, const Cell& cell) const {
  return {message.tensor, draft_.replica_of(message.from, cell),
          draft_.replica_of(message.to, cell), cell.slice};
}

/// What all devices do to bring a tensor to a stage on another grid.
const RedistributionBlocks& Transfers::redistribution_of(const Message& message, const Cell& cell) {
  const auto [found, fresh] = c_.redistributions.try_emplace(redistribution_key(message, cell));
  if (!fresh) return found->second;
  const Blocks& here = *c_.slices[cell.slice];
  found->second =
      redistribution_blocks({.id = message.tensor,
                             .tensor = &here.graph().tensors[message.tensor],
                             .from = &draft_.replica(message.from, cell).grid,
                             .to = &draft_.replica(message.to, cell).grid,
                             .leaves = here.leaving(message.tensor, message.from, message.to),
                             .arrives = here.arriving(message.tensor, message.from, message.to),
                             .backward = cell.pass == CellPass::backward,
                             .purpose = purpose_of(message, cell)},
                            c_.plan.graph(), c_.groups);
  return found->second;
}

/// What flows from one replica to another has groups of its own.
int Transfers::purpose_of(const Message& message, const Cell& cell) const {
  return draft_.replica_of(message.from, cell) * static_cast<int>(c_.stages.replicas().size()) +
         draft_.replica_of(message.to, cell);
}

/// This device class's part in bringing a tensor to a stage on another grid, after the cell that
/// makes it or before the one that reads it; -1 if it has none.
int Transfers::redistribute(const Message& message, const ScheduledCell& of, bool leaving) {
  const RedistributionBlocks& both = redistribution_of(message, of.cell);
  const auto& side = leaving ? both.leaving : both.arriving;
  const int device = c_.stages.device_classes()[draft_.device_class()].devices.front();
  const auto found = side.find(device);
  if (found == side.end()) return -1;
  std::string name = leaving ? "leaves" : "arrives";
  for (const int part : redistribution_key(message, of.cell)) name += " " + std::to_string(part);
  name += " " + std::to_string(device);
  const NumberedBlock& block = c_.table.shared(name, [&] { return found->second; });
  const int call = draft_.add_call(block.id, -1, of);
  const std::tuple passage(message.from, message.to, CellTensor(message.tensor, of.cell));
  if (leaving) left_[passage] = call;
  if (const auto join = both.joins.find(device); !leaving && join != both.joins.end()) {
    const int left = left_.at(passage);
    for (const int task : draft_.last_of_queues(left))
      draft_.wait(call, join->second, {left, task});
  }
  if (block.lowered.last_writer.contains(0))
    written_.note({message.tensor, of.cell}, {call, block.lowered.last_writer.at(0)});
  return call;
}

/// One half of a transfer between stages: the block of this class's side.
int Transfers::transfer(const Message& message, const ScheduledCell& of, Stream stream) {
  const bool sends = stream == Stream::send_forward || stream == Stream::send_backward;
  const placement::Grid& sender = draft_.replica(message.from, of.cell).grid;
  const placement::Grid& receiver = draft_.replica(message.to, of.cell).grid;
  const int group = c_.groups.across({sender, receiver}, purpose_of(message, of.cell));
  const std::string key = "transfer " + std::to_string(message.tensor) + (sends ? "s" : "r") +
                          std::to_string(group) + "/" + std::to_string(of.cell.slice);
  const int block = draft_.shared(key, [&] {
    return message_block({message, sends ? sender : receiver, group, stream},
                         *c_.slices[of.cell.slice], c_.stack, c_.groups);
  });
  const std::optional<Written> before = draft_.computed();
  const int call = draft_.add_call(block, -1, of);
  if (sends) return call;
  const auto last = static_cast<int>(draft_.tasks_of(call).size()) - 1;
  written_.note({message.tensor, of.cell}, {call, last});
  if (last > 0 && before) draft_.wait(call, last, *before);  // a gather, like other collectives
  return call;
}

}  // namespace stratagem::lowering
