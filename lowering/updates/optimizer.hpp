// Optimizer steps of one device class, and the buffers that live from iteration to iteration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// One step, as the stack performs it, for each parameter whose first reader on its device class is
/// `segment`. On the host if the plan says so.
struct StepBlock {
  int segment = 0;
  Bytes bytes;                ///< of the parameters, or of their shards
  Bytes gradients = {};       ///< of the same
  Bytes states = {};          ///< of their master copies and what the optimizer keeps of them
  Bytes without_master = {};  ///< of those parameters that have no master copy
  program::Block block;
  std::string key;                          ///< equal for equal blocks
  std::vector<model::TensorId> parameters;  ///< in the order of the tasks
};
std::vector<StepBlock> step_blocks(const SequenceContext& context, int device_class);

/// Parameters, gradients and optimizer states of the device class of a sequence that has all its
/// calls, per device, on it and in its server's memory; `versions` of the parameters are kept at
/// once.
std::vector<program::Resident> resident_buffers(const SequenceContext& context,
                                                const SequenceDraft& draft, int versions);

/// Those that belong to no parameter.
std::vector<program::Resident> buffers_beside(const SequenceContext& context,
                                              const SequenceDraft& draft);

/// Those of one parameter at a time.
class ParameterBuffers {
 public:
  /// Both must outlive it.
  ParameterBuffers(const SequenceContext& context, const SequenceDraft& draft, int versions);

  /// Of a parameter of the draft's device class.
  [[nodiscard]] std::vector<program::Resident> of(model::TensorId parameter,
                                                  const LocalHolding& local) const;

 private:
  const SequenceContext& c_;
  const SequenceDraft& draft_;
  int versions_;
  std::map<model::TensorId, model::DataType> cast_;  ///< parameters with copies in another type
};

}  // namespace stratagem::lowering
