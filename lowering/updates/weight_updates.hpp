// Gradient reductions and optimizer steps of one device class.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"
#include "lowering/updates/drive_staging.hpp"
#include "lowering/updates/optimizer.hpp"
#include "lowering/weights/gradients.hpp"

namespace stratagem::lowering {

/// Adds to the sequence of a device class the reductions and steps that update its weights.
class WeightUpdates {
 public:
  WeightUpdates(const SequenceContext& context, int device_class, SequenceDraft& draft);

  /// The cell in the device class's order after which the weights of an iteration are complete; -1
  /// if it has none to train.
  [[nodiscard]] int last_cell() const { return last_cell_; }
  /// Reduces every bucket that a segment of a cell completes.
  void reduce_completed(int cell, int segment);
  /// Call after a cell: if every cell reduces its gradients, reduces those that are left.
  void end_cell(int cell);
  /// The reductions that must have ended before more gradients are computed, so that at most two
  /// buckets exist at once: one that fills up and one that is reduced. Empty if gradients live all
  /// the time.
  [[nodiscard]] std::optional<Written> room_for_gradients() const;
  /// Call before the first cell: adds the steps, if they are delayed.
  void begin();
  /// Call after the last cell: reduces what is left. Then every parameter takes its step, or, with
  /// delayed steps, their results come back.
  void finish();

 private:
  [[nodiscard]] std::vector<program::Collective> collectives(const Bucket& bucket) const;
  std::vector<int> add_slots(program::Block& block, const Bucket& bucket,
                             const std::vector<Bytes>& sizes, program::Category category) const;
  [[nodiscard]] program::Block reduction_block(const Bucket& bucket,
                                               const std::vector<program::Collective>& works) const;
  /// The slots of a bucket's gradients before and after a sum; empty if they are in resident
  /// buffers.
  struct SlotsOfSum {
    std::vector<int> from, to;
  };
  [[nodiscard]] program::Operation sum(const Bucket& bucket, bool second,
                                       const SlotsOfSum& slots) const;
  void append_scatters(program::Block& block, const Bucket& bucket, const program::Collective& work,
                       const SlotsOfSum& slots) const;
  static program::Operation sum_of_parts(const Bucket& bucket);
  [[nodiscard]] program::Operation add_on_host(const Bucket& bucket, bool unreduced,
                                               const std::vector<int>& slots) const;
  [[nodiscard]] program::Task select_shards(Bytes bytes, const std::vector<int>& whole,
                                            const std::vector<int>& shards) const;
  [[nodiscard]] program::Task copy_out(std::vector<int> gradients, Bytes bytes,
                                       std::size_t tasks) const;
  [[nodiscard]] program::Task copy_in(Bytes bytes, std::size_t slots, bool ends) const;
  void stage_on_drives(program::Block& block, const Bucket& bucket, bool adds) const;
  void reduce(Bucket& bucket, const ScheduledCell& of);
  void add_steps(const ScheduledCell& last);
  void copy_stepped(const ScheduledCell& last);
  void gather_parameters(const ScheduledCell& last);
  void cast_parameters(const ScheduledCell& last);

  const SequenceContext& c_;
  int device_class_;
  SequenceDraft& draft_;
  const std::vector<ScheduledCell>& cells_;
  GradientBuckets buckets_;
  std::optional<DriveStaging> staging_;      ///< once there are steps
  std::multimap<int, std::size_t> of_cell_;  ///< along axes, by the cell that completes them
  int last_cell_ = -1;
  std::optional<Written> last_out_;               ///< where the last reduction has left the device
  std::optional<Written> before_last_;            ///< and the one before
  std::vector<Written> written_;                  ///< writes of gradients to drives
  std::map<model::TensorId, Written> on_drives_;  ///< the last of each bucket, by first gradient
  Written last_step_;
  Bytes stepped_;  ///< of the parameters that step here, or of their shards
  std::vector<program::Operand> stepped_weights_;  ///< these, where their steps are delayed
};

}  // namespace stratagem::lowering
