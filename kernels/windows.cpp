// Copies tokens of images, and what scores of their windows get added.
#include "kernels/windows.hpp"

#include <algorithm>

namespace stratagem::kernels {
namespace {

constexpr double hidden = -100;  ///< the logit of a pair that is not to see each other

/// work(token in images, the same one in their windows), for all tokens.
template <typename Work>
void for_each_token(const Image& image, const Work& work) {
  const std::int64_t across = image.rows / image.side, tokens = image.rows * image.rows;
  for (std::int64_t i = 0; i < image.images * tokens; ++i) {
    const std::int64_t r = i % tokens / image.rows, c = i % image.rows;
    const std::int64_t window = r / image.side * across + c / image.side;
    const std::int64_t within = r % image.side * image.side + c % image.side;
    work(i, i / tokens * tokens + window * image.side * image.side + within);
  }
}

template <typename T>
void copy_token(const Image& image, std::int64_t from, std::int64_t to, In<T> x, Out<T> y) {
  std::copy_n(x.begin() + from * image.width, image.width, y.begin() + to * image.width);
}

/// work(place in the table, place among the pairs), for all pairs of all heads.
template <typename Work>
void for_each_pair(std::int64_t side, std::int64_t heads, const Work& work) {
  const std::int64_t tokens = side * side;
  for (std::int64_t q = 0; q < tokens; ++q) {
    for (std::int64_t k = 0; k < tokens; ++k) {
      const std::int64_t down = q / side - k / side + side - 1;
      const std::int64_t right = q % side - k % side + side - 1;
      const std::int64_t entry = down * (2 * side - 1) + right;
      for (std::int64_t head = 0; head < heads; ++head)
        work(entry * heads + head, (head * tokens + q) * tokens + k);
    }
  }
}

/// Of a row or column of a shifted image: 0 in windows whose tokens were neighbours before; in the
/// last window 1 before the image's old edge, 2 behind it.
std::int64_t band(const Image& image, std::int64_t at) {
  if (at < image.rows - image.side) return 0;
  return at < image.rows - image.side / 2 ? 1 : 2;
}

/// The tokens of a window of this number that belong together have equal ones.
std::int64_t region(const Image& image, std::int64_t window, std::int64_t token) {
  const std::int64_t across = image.rows / image.side;
  const std::int64_t row = window / across * image.side + token / image.side;
  const std::int64_t column = window % across * image.side + token % image.side;
  return 3 * band(image, row) + band(image, column);
}

}  // namespace

template <typename T>
void to_windows(const Image& image, In<T> x, Out<T> y) {
  expect_size(image.size(), x, y);
  for_each_token(image, [&](auto token, auto at) { copy_token<T>(image, token, at, x, y); });
}

template <typename T>
void from_windows(const Image& image, In<T> x, Out<T> y) {
  expect_size(image.size(), x, y);
  for_each_token(image, [&](auto token, auto at) { copy_token<T>(image, at, token, x, y); });
}

template <typename T>
void shift(const Image& image, std::int64_t by, In<T> x, Out<T> y) {
  expect_size(image.size(), x, y);
  const std::int64_t n = image.rows;
  const auto moved = [&](std::int64_t at) { return (at + by + n) % n; };
  for (std::int64_t i = 0; i < image.images; ++i) {
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t c = 0; c < n; ++c)
        copy_token<T>(image, (i * n + moved(r)) * n + moved(c), (i * n + r) * n + c, x, y);
    }
  }
}

template <typename T>
void window_bias(std::int64_t side, std::int64_t heads, In<T> table, Out<T> y) {
  expect_size((2 * side - 1) * (2 * side - 1) * heads, table);
  expect_size(heads * side * side * side * side, y);
  for_each_pair(side, heads,
                [&](std::int64_t entry, std::int64_t pair) { y[pair] = table[entry]; });
}

template <typename T>
void window_bias_gradient(std::int64_t side, std::int64_t heads, In<T> dy, Out<T> dtable) {
  expect_size((2 * side - 1) * (2 * side - 1) * heads, dtable);
  expect_size(heads * side * side * side * side, dy);
  for_each_pair(side, heads,
                [&](std::int64_t entry, std::int64_t pair) { dtable[entry] += dy[pair]; });
}

template <typename T>
void window_mask(const Image& image, std::int64_t first, std::int64_t heads, In<T> x, Out<T> y) {
  const std::int64_t tokens = image.side * image.side, pairs = tokens * tokens;
  const std::int64_t across = image.rows / image.side;
  const auto windows = static_cast<std::int64_t>(x.size()) / (heads * pairs);
  expect_size(windows * heads * pairs, x, y);
  for (std::int64_t w = 0; w < windows; ++w) {
    const std::int64_t number = (first + w) % (across * across);
    for (std::int64_t at = 0; at < heads * pairs; ++at) {
      const std::int64_t query = at / tokens % tokens, key = at % tokens;
      const bool apart = region(image, number, query) != region(image, number, key);
      const std::int64_t place = w * heads * pairs + at;
      y[place] = x[place] + static_cast<T>(apart ? hidden : 0);
    }
  }
}

#define INSTANTIATE(T)                                                              \
  template void to_windows<T>(const Image&, In<T>, Out<T>);                         \
  template void from_windows<T>(const Image&, In<T>, Out<T>);                       \
  template void shift<T>(const Image&, std::int64_t, In<T>, Out<T>);                \
  template void window_bias<T>(std::int64_t, std::int64_t, In<T>, Out<T>);          \
  template void window_bias_gradient<T>(std::int64_t, std::int64_t, In<T>, Out<T>); \
  template void window_mask<T>(const Image&, std::int64_t, std::int64_t, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels
