// Copies between parts of tensors and whole ones, in the memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "execute/gpu/pool.hpp"
#include "execute/value.hpp"
#include "kernels/device.hpp"
#include "kernels/strided.hpp"

namespace stratagem::execute::gpu {

template <typename E>
kernels::DeviceOut<E> on_gpu(const Elements<E>& elements) {
  return {elements.data(), elements.size()};
}
template <typename E>
kernels::DeviceOut<E> on_gpu(std::span<E> elements) {
  return {elements.data(), elements.size()};
}

/// Where a region lies in a whole that contains it: `shape` goes from the whole to the region, one
/// element behind the other, from element `first` of the whole on.
struct Within {
  kernels::Strided shape;
  std::int64_t first = 0;
};

inline Within within(const Region& whole, const Region& region) {
  if (region.mask.ranges == whole.mask.ranges || region.size() == 0)
    return {.shape = {.sizes = {region.size()}, .from = {1}, .to = {1}},
            .first = region.size() == 0 ? 0 : region.begin - whole.begin};
  const std::vector<std::int64_t> sizes = region.shape(), all = whole.shape();
  Within result{.shape = {.sizes = sizes, .from = sizes, .to = sizes}};
  std::int64_t from = 1, to = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    result.shape.from[d] = from;
    result.shape.to[d] = to;
    result.first += (region.mask.ranges[d].begin - whole.mask.ranges[d].begin) * from;
    from *= all[d];
    to *= sizes[d];
  }
  return result;
}

/// Asked for on one stream, which outlives it.
class Parts {
 public:
  explicit Parts(const kernels::Stream& stream) : stream_(stream) {}

  template <typename E>
  void copy(const Elements<E>& all, const Region& whole, const Elements<E>& part,
            const Region& region) const {
    const auto [shape, first] = within(whole, region);
    kernels::copy_strided<E, E>(stream_, shape, false, from(all, first), on_gpu(part));
  }

  /// A region of a whole, one element behind the other, in fp32.
  template <typename T>
  void take(const Value<T>& whole, const Region& region, kernels::DeviceOut<float> to) const {
    const auto [shape, first] = within(whole.region, region);
    if (!whole.wide.empty()) {
      kernels::copy_strided<float, float>(stream_, shape, false, from(whole.wide, first), to);
    } else {
      kernels::copy_strided<T, float>(stream_, shape, false, from(whole.data, first), to);
    }
  }

  /// And back into the whole.
  template <typename T>
  void give(kernels::DeviceIn<float> taken, const Region& region, const Value<T>& whole,
            bool adds) const {
    const auto [shape, first] = within(whole.region, region);
    const kernels::Strided back{.sizes = shape.sizes, .from = shape.to, .to = shape.from};
    if (!whole.wide.empty()) {
      kernels::copy_strided<float, float>(stream_, back, adds, taken, from(whole.wide, first));
    } else {
      kernels::copy_strided<float, T>(stream_, back, adds, taken, from(whole.data, first));
    }
  }

 private:
  template <typename E>
  static kernels::DeviceOut<E> from(const Elements<E>& all, std::int64_t first) {
    const auto begin = static_cast<std::size_t>(first);
    return on_gpu(all).subspan(begin, all.size() - begin);
  }

  const kernels::Stream& stream_;
};

}  // namespace stratagem::execute::gpu
