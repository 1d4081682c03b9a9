// What a device class receives from other stages before its cells, and sends to them afterwards.
#pragma once

#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lowering/sequences/messages.hpp"
#include "lowering/sequences/written_tensors.hpp"

namespace stratagem::lowering {

/// Adds calls that send, receive and redistribute tensors between stages. Messages are received in
/// the order in which their sender's cells produce them, so both sides agree.
class Transfers {
 public:
  Transfers(const SequenceContext& context, SequenceDraft& draft, WrittenTensors& written)
      : c_(context), draft_(draft), written_(written) {}

  void receive_for(const ScheduledCell& of);
  /// What a cell computes leaves when all of it has ended: splitting it is the plan's business.
  void send_from(const ScheduledCell& of);

 private:
  [[nodiscard]] bool redistributes(const Message& message) const {
    return c_.stages.transfer(message.from, message.to) == StageTransfer::redistributes;
  }
  [[nodiscard]] bool stays(const Message& message) const {
    return c_.stages.transfer(message.from, message.to) == StageTransfer::stays;
  }
  void receive_until(const Message& message, const ScheduledCell& of, program::Stream stream);
  void receive_all(const Message& like, const ScheduledCell& sent, const ScheduledCell& of,
                   program::Stream stream);
  [[nodiscard]] std::vector<ScheduledCell> receive_order(const Message& message,
                                                         const ScheduledCell& of) const;
  [[nodiscard]] std::array<int, 4> redistribution_key(const Message& message,
                                                      const placement::Cell& cell) const;
  const RedistributionBlocks& redistribution_of(const Message& message,
                                                const placement::Cell& cell);
  [[nodiscard]] int purpose_of(const Message& message, const placement::Cell& cell) const;
  int redistribute(const Message& message, const ScheduledCell& of, bool leaving);
  int transfer(const Message& message, const ScheduledCell& of, program::Stream stream);

  const SequenceContext& c_;
  SequenceDraft& draft_;
  WrittenTensors& written_;
  /// By stages: the call in which this device sends its part of a tensor to another grid.
  std::map<std::tuple<int, int, CellTensor>, int> left_;
  /// Ahead of the cell that reads it; by stages.
  std::set<std::tuple<int, int, CellTensor>> received_;
  /// By connection (replicas from and to, pass, recycled): the cells that send on it, and which of
  /// them comes next.
  std::map<std::array<int, 4>, std::pair<std::size_t, std::vector<ScheduledCell>>> senders_;
};

}  // namespace stratagem::lowering
