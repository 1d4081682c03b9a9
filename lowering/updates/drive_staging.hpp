// Reads from the drives before steps on the host, and writes after them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"
#include "lowering/updates/optimizer.hpp"

namespace stratagem::lowering {

/// Adds the reads and writes around the steps of a device class, in three streams in order: the
/// states of the next segment are read while this one steps and the one before is written. Each
/// segment has a buffer in host memory from its read to the end of its write. There are three
/// buffers at once: a read begins when the write three segments before it has ended.
///   bytes read per device and iteration, of the parameters (or shards) that it steps
///     states on drives: the master copy and the optimizer's states; 12 with Adam in fp16
///     parameters on drives: the weights, where there is no master copy to read instead
///   bytes written
///     states on drives: the same again; parameters on drives: the weights, 2 a parameter in fp16
/// Gradients and what frameworks keep beside the states wait in memory, which is simplified:
/// DeepSpeed may write gradients out, too. Source: Rajbhandari et al., ZeRO-Infinity, SC 2021,
/// arXiv:2104.07857, section 5.2 (optimizer step in pieces, with reads and writes beside it).
class DriveStaging {
 public:
  DriveStaging(const SequenceContext& context, SequenceDraft& draft) : c_(context), draft_(draft) {}

  /// Call before the call of step `i`: adds the reads that are due, the first one after `ready`.
  /// May add a buffer to the step's block.
  void before_step(std::vector<StepBlock>& steps, std::size_t i, const ScheduledCell& of,
                   const Written& ready);
  /// Call after it: makes the step wait for its read, and writes when the step's task `last` has
  /// ended. The last write of all is left to `finish`, so that a host that waits for it has
  /// launched everything else.
  void after_step(const std::vector<StepBlock>& steps, std::size_t i, const Written& last,
                  const ScheduledCell& of);
  /// Adds the last write. Unless steps are delayed, the host waits for its end, so that the next
  /// iteration finds everything in its place.
  void finish();
  /// The last write; a task of no call if nothing was written.
  [[nodiscard]] const Written& last_write() const { return last_write_; }

 private:
  [[nodiscard]] Bytes read_of(const StepBlock& step) const;
  [[nodiscard]] Bytes written_of(const StepBlock& step) const;
  [[nodiscard]] program::Slot buffer(const StepBlock& step) const;
  /// Adds a call of one task that moves bytes between the drives and the buffer of a step. A read
  /// allocates the buffer and a write frees it. `waits`: does the host wait for it?
  int move(const StepBlock& step, bool reads, Bytes bytes, bool waits, const ScheduledCell& of);
  void read(const StepBlock& step, const ScheduledCell& of, const Written& ready);
  void write(const StepBlock& step, const Written& after, const ScheduledCell& of, bool ends);
  void wait_for_room(int call, std::size_t i);

  const SequenceContext& c_;
  SequenceDraft& draft_;
  std::vector<Written> reads_;   ///< by step; of no call where nothing is read
  std::vector<Written> writes_;  ///< by step
  Written last_write_;

  struct Pending {
    StepBlock step;
    Written after;
    const ScheduledCell* of = nullptr;
  };
  std::optional<Pending> pending_;
};

}  // namespace stratagem::lowering
