// Copies of a GPU's values in pinned memory, made while the host goes on, and their sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "execute/gpu/pool.hpp"
#include "execute/value.hpp"
#include "kernels/device.hpp"

namespace stratagem::execute::gpu {

/// Of one stream, which outlives it.
class Notes {
 public:
  explicit Notes(const kernels::Stream& stream) : stream_(stream) {}

  /// Adds `weight` times the sum of a value, as it is now, to one of several sums.
  template <typename T>
  void note(const Value<T>& value, double weight, std::size_t sum) {
    const auto size = static_cast<std::size_t>(value.region.size());
    float* const seen = pinned<float>(size);
    notes_.push_back({.values = {seen, size}, .weight = weight, .sum = sum});
    kernels::copy_bytes(stream_, place_of(value), seen, size * sizeof(float));
  }

  /// Waits for the stream.
  std::vector<double> noted(std::size_t sums) {
    stream_.synchronise();
    std::vector<double> result(sums);
    for (const Note& note : notes_) {
      for (const float number : note.values)
        result[note.sum] += static_cast<double>(number) * note.weight;
    }
    notes_.clear();
    pinned_used_ = 0;
    return result;
  }

  /// What lies on the host, which may go once this returns.
  template <typename E>
  Elements<E> uploaded(const Elements<E>& values, Pool& pool) {
    E* const leaving = pinned<E>(values.size());
    std::ranges::copy(values, leaving);
    const std::size_t bytes = values.size() * sizeof(E);
    Elements<E> result(pool.take(bytes), values.size());
    kernels::copy_bytes(stream_, leaving, result.data(), bytes);
    return result;
  }

 private:
  struct Note {
    std::span<const float> values;  ///< on the host once the stream has come so far
    double weight = 0;
    std::size_t sum = 0;
  };

  /// Memory until `noted`.
  template <typename E>
  E* pinned(std::size_t size) {
    if (pinned_used_ == pinned_.size()) pinned_.emplace_back();
    kernels::PinnedArray<std::byte>& place = pinned_[pinned_used_++];
    const std::size_t bytes = size * sizeof(E);
    if (place.size() < bytes) place = kernels::PinnedArray<std::byte>(bytes);
    return reinterpret_cast<E*>(place.data());
  }

  const kernels::Stream& stream_;
  std::vector<Note> notes_;
  std::vector<kernels::PinnedArray<std::byte>> pinned_;
  std::size_t pinned_used_ = 0;
};

}  // namespace stratagem::execute::gpu
