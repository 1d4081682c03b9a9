// What tests on a GPU share: a stream, operands in every type, and how far results may be off.
#pragma once

#include <iostream>

#include "kernels/device.hpp"
#include "kernels/half.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels {

/// Where there is no GPU a test says so, which ctest takes for skipped, and ends.
inline bool no_device() {
  static const bool none = devices().empty();
  if (none) std::cout << "no CUDA device (" << why_no_devices() << "): skipped\n";
  return none;
}

inline const Stream& stream() {
  static const Stream only;
  return only;
}

/// Whether a processor stands in for the GPU (tests/kernels/emulated): it takes its time, which
/// says nothing.
inline bool emulated() { return stream().device().name == "emulated"; }

/// The same where time is told by a GPU, or by nothing.
inline bool no_clock() {
  if (no_device()) return true;
  if (emulated()) std::cout << "emulated: skipped\n";
  return emulated();
}

/// The relative_error that each type may have: half of the last bit is 4.9e-4 and 3.9e-3 in those
/// of two bytes.
template <typename T>
constexpr double tolerance = std::is_same_v<T, Half>
                                 ? 5e-3
                                 : (std::is_same_v<T, BFloat16> ? 1e-2 : fp32_error);

/// Calls `run.operator()<T>()` for every type that the GPU has.
template <typename Run>
void for_types(const Run& run) {
  run.template operator()<float>();
  run.template operator()<Half>();
  if (stream().device().at_least(8)) run.template operator()<BFloat16>();
}

/// The same numbers on the GPU, and in fp64.
template <typename T>
struct Both {
  DeviceArray<T> device;
  std::vector<double> values;

  operator DeviceIn<T>() const { return device; }
};

template <typename T>
Both<T> both(const std::vector<T>& numbers) {
  return {on_device(stream(), numbers), std::vector<double>(numbers.begin(), numbers.end())};
}

/// Numbers in [-1, 1), rounded to T.
template <typename T>
Both<T> random_both(std::int64_t size, std::uint64_t number) {
  return both(random_operand<T>(size, number));
}

/// Room for a result, full of what is no number: whatever a kernel leaves unwritten fails.
template <typename T>
DeviceArray<T> room(std::int64_t size) {
  DeviceArray<T> result(static_cast<std::size_t>(size));
  fill_bytes(stream(), result.data(), 0xFF, result.size() * sizeof(T));
  return result;
}

/// relative_error of what is on the GPU.
template <typename T>
double error_of(const DeviceArray<T>& result, const std::vector<double>& reference) {
  return relative_error(on_host(stream(), result), reference);
}

}  // namespace stratagem::kernels
