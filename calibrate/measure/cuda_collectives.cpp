// Groups, buffers, and rounds between barriers.
#include "calibrate/measure/cuda_collectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "calibrate/measure/collective_call.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::DeviceArray;
using kernels::DeviceCommunicator;
using kernels::DeviceIn;
using kernels::DeviceSpan;
using kernels::Reduction;
using kernels::Stream;

/// What is dealt was last used a whole pool ago.
class DeviceBuffers {
 public:
  DeviceBuffers(const Stream& stream, std::size_t elements) : zeros_(elements) {
    kernels::fill_bytes(stream, zeros_.data(), 0, elements * sizeof(float));
  }
  DeviceSpan<float> next(std::size_t elements) {
    if (used_ + elements > zeros_.size()) used_ = 0;
    const std::size_t at = used_;
    used_ += (elements + 127) / 128 * 128;
    return zeros_.span().subspan(at, elements);
  }

 private:
  DeviceArray<float> zeros_;
  std::size_t used_ = 0;
};

/// A group's operations on one stream, as call_collective asks for them.
struct OnStream {
  DeviceCommunicator& group;
  const Stream& stream;

  [[nodiscard]] int size() const { return group.size(); }
  template <typename T>
  void all_reduce(Reduction reduction, DeviceSpan<T> values) {
    group.all_reduce<T>(stream, reduction, values);
  }
  template <typename T>
  void all_gather(DeviceIn<T> part, DeviceSpan<T> whole) {
    group.all_gather<T>(stream, part, whole);
  }
  template <typename T>
  void reduce_scatter(Reduction reduction, DeviceIn<T> whole, DeviceSpan<T> part) {
    group.reduce_scatter<T>(stream, reduction, whole, part);
  }
  template <typename T>
  void all_to_all(DeviceIn<T> out, DeviceSpan<T> in) {
    group.all_to_all<T>(stream, out, in);
  }
  template <typename T>
  void broadcast(int root, DeviceSpan<T> values) {
    group.broadcast<T>(stream, root, values);
  }
  template <typename T>
  void reduce(Reduction reduction, int root, DeviceSpan<T> values) {
    group.reduce<T>(stream, reduction, root, values);
  }
};

/// Every rank to the next one at once.
void ring_of_sends(const OnStream& on, std::size_t elements, DeviceBuffers& buffers) {
  const int n = on.size(), rank = on.group.rank();
  const DeviceIn<float> out = buffers.next(elements);
  const DeviceSpan<float> in = buffers.next(elements);
  on.group.exchange(on.stream, {{.to = (rank + 1) % n, .values = source(out)}},
                    {{.from = (rank + n - 1) % n, .values = target(in)}});
}

constexpr std::size_t filled_bytes = std::size_t{1} << 30;

}  // namespace

/// Groups are made once and kept for all of their collectives: making one takes NCCL far longer
/// than a collective.
struct CudaCollectives::Groups {
  Groups(kernels::Communicator& ranks, const Stream& stream, kernels::GivingUp giving_up)
      : filled(filled_bytes),
        buffers(stream, static_cast<std::size_t>(
                            (2 * stream.device().l2_cache.value + 3.0 * largest_gpu_collective) /
                            sizeof(float))),
        all(kernels::nccl_communicator(ranks, stream, std::move(giving_up))) {}

  DeviceArray<std::byte> filled;
  DeviceBuffers buffers;
  GpuGroups current;  ///< none of a size of 0
  /// They go before the memory, which cannot be freed while the GPU waits for a rank that is lost:
  /// groups end that.
  std::unique_ptr<DeviceCommunicator> all;
  std::unique_ptr<DeviceCommunicator> group;  ///< none where this rank waits
};

CudaCollectives::CudaCollectives(kernels::Communicator& ranks, const Stream& stream,
                                 kernels::GivingUp giving_up)
    : ranks_(ranks),
      stream_(stream),
      groups_(std::make_unique<Groups>(ranks, stream, std::move(giving_up))) {}

CudaCollectives::~CudaCollectives() = default;

void CudaCollectives::enter(const GpuGroups& groups) {
  const auto same = [](const GpuGroups& a, const GpuGroups& b) {
    return a.grouping.size == b.grouping.size && a.grouping.stride == b.grouping.stride &&
           a.groups == b.groups;
  };
  if (same(groups, groups_->current)) return;
  groups_->group.reset();
  groups_->current = groups;
  const std::vector<int> members = group_of(groups, ranks_.rank(), ranks_.size());
  if (!members.empty()) groups_->group = groups_->all->group(members);
}

void CudaCollectives::wait() { (groups_->group ? *groups_->group : *groups_->all).wait(stream_); }

Seconds CudaCollectives::once(const std::function<void()>& launch, int times, int fills) {
  kernels::Event begin, end;
  for (int i = 0; i < fills; ++i)
    kernels::fill_bytes(stream_, groups_->filled.data(), 0, filled_bytes);
  groups_->all->barrier(stream_);
  begin.record(stream_);
  for (int i = 0; i < times; ++i) launch();
  end.record(stream_);
  wait();
  return (1.0 / times) * end.since(begin);
}

int CudaCollectives::fills_for(const std::function<void()>& launch, int times) {
  kernels::Event begin, end;
  begin.record(stream_);
  kernels::fill_bytes(stream_, groups_->filled.data(), 0, filled_bytes);
  end.record(stream_);
  const Seconds asked = now();
  for (int i = 0; i < times; ++i) launch();
  const Seconds host = now() - asked;
  wait();
  return std::clamp(static_cast<int>(std::ceil(1.5 * (host / end.since(begin)))), 1, 64);
}

double CudaCollectives::greatest(double mine) {
  std::array<double, 1> value = {mine};
  ranks_.all_reduce(kernels::Reduction::maximum, std::span<double>(value));
  return value[0];
}

Timed CudaCollectives::time_of(const GpuCollective& collective, const Effort& effort) {
  const Seconds begin = now();
  enter(collective.groups);
  const auto elements = static_cast<std::size_t>(collective.size) / sizeof(float);
  const std::function<void()> launch = [&] {
    if (!groups_->group) return;
    OnStream on{*groups_->group, stream_};
    call_collective(collective.kind, on, elements, groups_->buffers,
                    [&](std::size_t all) { ring_of_sends(on, all, groups_->buffers); });
  };
  for (int i = 0; i < effort.warm_up; ++i) launch();
  wait();
  constexpr Seconds worth{100e-6};  // events tell half a microsecond
  const double first = greatest(once(launch, 1, 1).value);
  const int times = std::clamp(static_cast<int>(std::ceil(worth.value / first)), 1, 20);
  const int fills = fills_for(launch, times);
  const auto round = [&] {
    std::vector<double> samples(static_cast<std::size_t>(effort.least));
    for (double& sample : samples) sample = once(launch, times, fills).value;
    ranks_.all_reduce(kernels::Reduction::maximum, std::span(samples));
    std::vector<Seconds> result;
    for (const double sample : samples) result.push_back(Seconds{sample});
    return result;
  };
  Effort rest = effort;
  rest.budget = effort.budget - (now() - begin);
  return time_of_rounds(round, rest, ranks_);
}

}  // namespace stratagem::calibrate
