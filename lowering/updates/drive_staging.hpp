// Reads from the drives before steps on the host, and writes after them.
#pragma once

#include <optional>
#include <vector>

#include "lowering/residency/ahead.hpp"
#include "lowering/updates/optimizer.hpp"

namespace stratagem::lowering {

/// The reads and writes around the steps of a device class, in three streams in order: what the
/// next segment's step reads comes while this one steps and the one before is written. Each segment
/// has a buffer in host memory from its read to the end of its write, of three at once.
///   bytes read per device and iteration, of the parameters (or shards) that it steps
///     states on drives: the master copy and the optimizer's states; 12 with Adam in fp16
///     parameters on drives: the weights, where there is no master copy to read instead
///     gradients on drives: the gradients, beside what cells read and write to sum them up
///   bytes written
///     states on drives: the same again; parameters on drives: the weights, 2 a parameter in fp16
/// What frameworks keep beside the states waits in memory. Source: Rajbhandari et al.,
/// ZeRO-Infinity, SC 2021, arXiv:2104.07857, section 5.2 (optimizer step in pieces, with reads and
/// writes beside it).
class DriveStaging : public AheadOfRuns {
 public:
  /// The first read follows `ready`.
  DriveStaging(const SequenceContext& context, SequenceDraft& draft,
               const std::vector<StepBlock>& steps, const ScheduledCell& of, const Written& ready);

  /// Call before the call of the next step: adds the reads that are due, and a buffer to the block
  /// of a step that writes and does not read. After the call, after_run.
  void before_step(StepBlock& step);
  /// Adds the last write, which after_run leaves to this, so that a host that waits for it has
  /// launched everything else. Unless steps are delayed, the host waits for its end, and the next
  /// iteration finds everything in its place.
  void finish();
  /// The last write; a task of no call if nothing was written.
  [[nodiscard]] const Written& last_write() const { return last_write_; }

 private:
  /// What is moved of a step.
  struct Staged {
    int segment = 0;
    int tasks = 0;
    program::Slot buffer;
    Bytes read, written;
  };
  [[nodiscard]] Staged staged(const StepBlock& step) const;
  [[nodiscard]] bool may_issue(std::size_t /*run*/) const override { return true; }
  Written issue(std::size_t i) override;
  void connect(std::size_t i, int call) override;
  Written end_of(std::size_t i, int call) override;
  int move(const Staged& step, bool reads, bool waits);
  Written write(const Staged& step, const Written& after, bool waits);

  const ScheduledCell& of_;
  Written ready_;
  std::vector<Staged> steps_;
  std::optional<Written> last_step_;  ///< what the last write is to follow
  Written last_write_;
};

}  // namespace stratagem::lowering
