// Messages that cells of one stage receive from and send to other stages.
#pragma once

#include <vector>

#include "lowering/cells/cells.hpp"
#include "lowering/stages/stages.hpp"

namespace stratagem::lowering {

/// A tensor that a cell receives from or sends to another stage.
struct Message {
  model::TensorId tensor = -1;
  int from = 0;  ///< stages
  int to = 0;
  bool recycled = false;  ///< from the repeat of the forward pass before
  /// For an incoming gradient: the activation that was sent to get it.
  model::TensorId activation = -1;
};

/// The messages of a cell: activations, gradients where they are trained, and tensors that the next
/// repeat of the forward pass recycles. Weight-gradient cells have none.
std::vector<Message> incoming(const strategies::Plan& plan, const Stages& stages,
                              const placement::Cell& cell);
std::vector<Message> outgoing(const strategies::Plan& plan, const Stages& stages,
                              const placement::Cell& cell);

/// The replicas between which messages go.
struct ReplicaPair {
  const Replica& sender;
  const Replica& receiver;
};

/// The cells that send one kind of message from one replica to another, in the order in which its
/// devices send them in an iteration.
std::vector<ScheduledCell> send_order(const strategies::Plan& plan, const Stages& stages,
                                      const CellOrder& order, const ReplicaPair& pair,
                                      placement::CellPass pass, bool recycled);

}  // namespace stratagem::lowering
