// Packs the buffers of one device into one piece of memory, by when they are allocated and freed.
#pragma once

#include <cstddef>
#include <vector>

#include "execute/value.hpp"
#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// Buffers of an iteration that runs task after task, in the order of the program. None of two that
/// live at the same time overlap; all begin at multiples of 64 bytes.
///
/// Parameters and gradients that are resident have buffers for good, or for the part of the
/// iteration in which they live; so have optimizer states on the device, together. What else
/// frameworks keep has none.
///
/// Where iterations overlap, what outlives its round has a buffer for good in each of as many
/// rounds as may be on their way: more than are alive at once.
struct BufferPacking {
  struct Buffer {
    std::size_t offset = 0;
    std::size_t capacity = 0;  ///< bytes
  };
  std::vector<Buffer> buffers;
  /// By number in program::Buffers: its buffer here, -1 if it has none; for as many iterations as
  /// may be on their way at once, which take turns.
  std::vector<std::vector<int>> buffer_of;
  int states = -1;         ///< the buffer of all optimizer states
  std::size_t extent = 0;  ///< of all
};

/// Bytes that elements take, whatever their type in the graph; those of masks take one.
struct ElementSizes {
  std::size_t number = 4;
  std::size_t wide = 4;   ///< see `List`
  std::size_t state = 4;  ///< of the optimizer's
};
template <typename T>
constexpr ElementSizes sizes_of() {
  return {.number = sizeof(T), .wide = sizeof(OnHost<T>), .state = sizeof(OnHost<T>)};
}

/// A new buffer takes the smallest gap that is large enough, the first of equals.
BufferPacking pack_buffers(const program::Program& program, const model::Graph& graph, int device,
                           const ElementSizes& sizes);

}  // namespace stratagem::execute
