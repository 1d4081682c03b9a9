// Kernels that treat every element alike: packets in, a function of single elements, packets out.
#pragma once

#include <algorithm>

#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"

namespace stratagem::kernels {

enum class Access { read, write, update };

/// An operand of such a kernel.
template <typename T, Access access>
struct EachOperand {
  using Element = T;
  T* data;
  static constexpr bool reads = access != Access::write, writes = access != Access::read;
};
template <typename T>
EachOperand<T, Access::read> reads(DeviceIn<T> x) {
  return {const_cast<T*>(x.data())};
}
template <typename T>
EachOperand<T, Access::write> writes(DeviceOut<T> x) {
  return {x.data()};
}
template <typename T>
EachOperand<T, Access::update> updates(DeviceOut<T> x) {
  return {x.data()};
}

/// Some elements of an operand on their way through a thread.
template <int count, typename Operand>
struct Held {
  using T = typename Operand::Element;

  __device__ Held(const Operand& operand, std::int64_t first) : at(operand.data + first) {
    if constexpr (Operand::reads) {
      const auto packet = *reinterpret_cast<const Packet<T, count>*>(at);
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = widen(packet.elements[i]);
    }
  }
  __device__ void finish() const {
    if constexpr (Operand::writes) {
      Packet<T, count> packet;
#pragma unroll
      for (int i = 0; i < count; ++i) packet.elements[i] = narrow<T>(values[i]);
      *reinterpret_cast<Packet<T, count>*>(at) = packet;
    }
  }

  T* at;
  Arithmetic<T> values[count];
};

template <int count, typename Work, typename... Operands>
__device__ void treat(const Work& work, std::int64_t first, Held<count, Operands>... held) {
#pragma unroll
  for (int i = 0; i < count; ++i) work(first + i, held.values[i]...);
  (held.finish(), ...);
}

template <int count, typename Work, typename... Operands>
__global__ void __launch_bounds__(256)
    each_kernel(std::int64_t size, bool in_packets, Work work, Operands... operands) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t first = thread * count; first < size; first += threads * count) {
    if (in_packets && first + count <= size) {
      treat<count>(work, first, Held<count, Operands>(operands, first)...);
    } else {
      const std::int64_t end = first + count < size ? first + count : size;
      for (std::int64_t i = first; i < end; ++i)
        treat<1>(work, i, Held<1, Operands>(operands, i)...);
    }
  }
}

/// Calls `work(i, values...)` for every i < size, with a reference to element i of each operand:
/// those of two bytes as floats.
template <typename Work, typename... Operands>
void for_each(const Stream& stream, std::size_t size, const Work& work, Operands... operands) {
  if (size == 0) return;
  constexpr int widest = std::max({static_cast<int>(sizeof(typename Operands::Element))...});
  constexpr int count = 16 / widest;
  const bool in_packets =
      (aligned(operands.data, count * sizeof(typename Operands::Element)) && ...);
  const std::size_t blocks = (size + 256 * count - 1) / (256 * count);
  start_kernel(stream, &each_kernel<count, Work, Operands...>,
               {static_cast<unsigned>(std::min<std::size_t>(blocks, 1U << 30)), 256},
               static_cast<std::int64_t>(size), in_packets, work, operands...);
}

}  // namespace stratagem::kernels
