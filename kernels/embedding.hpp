// Rows of a table, picked by token; the table may be a part of the vocabulary.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y (tokens, width) = table[token - first]; tokens of other parts of the vocabulary get zeros, so
/// that the sum over all parts is the whole table's. `table` holds rows first, first + 1, ...
template <typename T>
void embedding(std::int64_t width, std::int64_t first, In<std::int64_t> tokens, In<T> table,
               Out<T> y);
template <typename T>
void embedding(const Stream& stream, std::int64_t width, std::int64_t first,
               DeviceIn<std::int64_t> tokens, DeviceIn<T> table, DeviceOut<T> y);

/// Adds dy (tokens, width) to the rows of `dtable` that the tokens name. On a GPU the sum of a row
/// is taken in the order of its tokens and is the same every time; the search for equal tokens
/// takes time that grows with the square of their number.
template <typename T>
void embedding_gradient(std::int64_t width, std::int64_t first, In<T> dy, In<std::int64_t> tokens,
                        Out<T> dtable);
template <typename T>
void embedding_gradient(const Stream& stream, std::int64_t width, std::int64_t first,
                        DeviceIn<T> dy, DeviceIn<std::int64_t> tokens, DeviceOut<T> dtable);

}  // namespace stratagem::kernels
