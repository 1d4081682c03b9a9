// Times collectives of ranks with a GPU each, by the GPUs' own clocks.
#pragma once

#include <functional>
#include <memory>

#include "calibrate/measure/gpu_collectives.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "kernels/device.hpp"
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::calibrate {

/// All ranks make one and call it alike. Buffers are of zeros, which stay zeros however often they
/// are summed, and dealt in turn out of twice the L2 cache and the largest buffers.
class CudaCollectives {
 public:
  /// `giving_up` is for ranks that are lost meanwhile: CommunicationError.
  CudaCollectives(kernels::Communicator& ranks, const kernels::Stream& stream,
                  kernels::GivingUp giving_up);
  ~CudaCollectives();
  CudaCollectives(const CudaCollectives&) = delete;
  CudaCollectives& operator=(const CudaCollectives&) = delete;

  /// A sample is of several collectives in a row, as many as make 100 us and at most 20: behind a
  /// barrier of all ranks' streams, from one event to another, of the rank that takes longest,
  /// waiting for others included. That a rank leaves the barrier some microseconds before another
  /// is in it. While the host asks for them the GPU fills memory, as long as that takes.
  /// All-reduces, broadcasts and reduces are in place.
  Timed time_of(const GpuCollective& collective, const Effort& effort);

 private:
  struct Groups;
  void enter(const GpuGroups& groups);
  /// How long this rank is at it, each.
  Seconds once(const std::function<void()>& launch, int times, int fills);
  /// Enough to cover what the host needs to ask for `times` of them.
  int fills_for(const std::function<void()>& launch, int times);
  [[nodiscard]] double greatest(double mine);
  void wait();

  kernels::Communicator& ranks_;
  const kernels::Stream& stream_;
  std::unique_ptr<Groups> groups_;
};

}  // namespace stratagem::calibrate
