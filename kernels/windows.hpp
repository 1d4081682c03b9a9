// Images of tokens: cut into windows, moved by half of one; biases and masks of windows.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// So many images of rows x rows tokens, one row after another, each of `width` elements. Windows
/// of side x side tokens divide an image without rest.
struct Image {
  std::int64_t images = 0;
  std::int64_t rows = 0;
  std::int64_t side = 0;
  std::int64_t width = 0;

  [[nodiscard]] std::int64_t size() const { return images * rows * rows * width; }
};

/// y (images, windows, side * side, width) = the tokens of x (images, rows * rows, width), window
/// by window, in both row by row.
template <typename T>
void to_windows(const Image& image, In<T> x, Out<T> y);
/// The inverse.
template <typename T>
void from_windows(const Image& image, In<T> x, Out<T> y);

/// y[r][c] = x[r + by][c + by], both modulo the image's rows; `by` may be below 0.
template <typename T>
void shift(const Image& image, std::int64_t by, In<T> x, Out<T> y);

/// Biases of pairs of a window's tokens: y (heads, side^2, side^2), looked up in `table`
/// ((2 side - 1)^2, heads). A query at (r, c) and a key at (s, d) have its row
/// (r - s + side - 1) * (2 side - 1) + c - d + side - 1. Liu et al., Swin Transformer,
/// arXiv:2103.14030, equation 4.
template <typename T>
void window_bias(std::int64_t side, std::int64_t heads, In<T> table, Out<T> y);
/// Adds to `dtable` the gradients dy of all pairs.
template <typename T>
void window_bias_gradient(std::int64_t side, std::int64_t heads, In<T> dy, Out<T> dtable);

/// Scores (windows, heads, side^2, side^2) of images that were shifted by half a window: y = x,
/// less 100 where query and key came from opposite edges of the image. `first` is the number of the
/// first window, counted over all images. The paper's section 3.2, figure 4.
template <typename T>
void window_mask(const Image& image, std::int64_t first, std::int64_t heads, In<T> x, Out<T> y);

}  // namespace stratagem::kernels
