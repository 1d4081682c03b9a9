// Rows of a table, picked by token; the table may be a part of the vocabulary.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y (tokens, width) = table[token - first]; tokens of other parts of the vocabulary get zeros, so
/// that the sum over all parts is the whole table's. `table` holds rows first, first + 1, ...
template <typename T>
void embedding(std::int64_t width, std::int64_t first, In<std::int64_t> tokens, In<T> table,
               Out<T> y);

/// Adds dy (tokens, width) to the rows of `dtable` that the tokens name.
template <typename T>
void embedding_gradient(std::int64_t width, std::int64_t first, In<T> dy, In<std::int64_t> tokens,
                        Out<T> dtable);

}  // namespace stratagem::kernels
