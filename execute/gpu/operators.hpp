// One operator on a GPU, on the parts that a rank has of its operands.
#pragma once

#include <string_view>

#include "execute/engine.hpp"
#include "kernels/device.hpp"

namespace stratagem::execute::gpu {

/// An application with where it is computed.
template <typename T>
struct Work {
  const Application<T>& a;
  const kernels::Stream& stream;
  Engine<T>& engine;  ///< has memory for intermediate results

  [[nodiscard]] kernels::DeviceIn<T> in(std::size_t i) const { return span(a.inputs[i]->data); }
  [[nodiscard]] kernels::DeviceOut<T> out(std::size_t i) const { return span(a.outputs[i]->data); }
  /// Numbers that belong to whole rows, fp32 in every type.
  [[nodiscard]] kernels::DeviceIn<float> by_row(std::size_t i) const {
    return row_numbers(*a.inputs[i]);
  }
  [[nodiscard]] kernels::DeviceOut<float> out_by_row(std::size_t i) const {
    return row_numbers(*a.outputs[i]);
  }
  /// Tokens or labels.
  [[nodiscard]] kernels::DeviceIn<std::int64_t> numbers(std::size_t i) const {
    return span(a.inputs[i]->numbers);
  }
  template <typename E = T>
  [[nodiscard]] Elements<E> temporary(std::size_t size) const {
    return Elements<E>(engine.allocate(size * sizeof(E)), size);
  }
  template <typename E>
  static kernels::DeviceOut<E> span(const Elements<E>& elements) {
    return {elements.data(), elements.size()};
  }

 private:
  static kernels::DeviceOut<float> row_numbers(const Value<T>& value) {
    if constexpr (has_wide<T>) {
      return span(value.wide);
    } else {
      return span(value.data);
    }
  }
};

/// Has it kernels for a kind of operator?
bool computes(std::string_view kind);

/// Expects an operator that is not refused for GPUs.
template <typename T>
void apply(const Work<T>& work);

}  // namespace stratagem::execute::gpu
