// Which element types a GPU computes with.
#pragma once

#include "kernels/half.hpp"
#include "kernels/inside/stream.cuh"

namespace stratagem::kernels {

/// Throws DeviceError for bf16 on a GPU older than compute capability 8.0, which has none.
template <typename T>
void expect_type(const Stream& stream) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (!stream.device().at_least(8))
      throw DeviceError("bf16 needs compute capability 8.0; " + stream.device().name + " has " +
                        std::to_string(stream.device().major) + "." +
                        std::to_string(stream.device().minor));
  }
}

}  // namespace stratagem::kernels
