// Windows of images: copies held to where each token must go, biases and masks to the published
// code's definitions, gradients to what the forward kernels do.
#include "kernels/windows.hpp"

#include <cstdlib>
#include <vector>

#include "tests/catch.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::windows_test {
namespace {

/// Two images of 6 x 6 tokens in windows of 3 x 3, or of 6 x 6 in windows of 2 x 2.
Image image_with(std::int64_t side) { return {.images = 2, .rows = 6, .side = side, .width = 2}; }

template <typename Kernel>
std::vector<double> result_of(const Image& image, const Kernel& kernel,
                              const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(image.size()));
  kernel(In<double>(x), Out<double>(y));
  return y;
}

TEST_CASE("windows of an image: each token once, window by window, row by row in each") {
  const Image image{.images = 1, .rows = 4, .side = 2, .width = 1};
  std::vector<double> x(16);
  for (std::size_t i = 0; i < 16; ++i) x[i] = static_cast<double>(i);
  const auto y = result_of(
      image, [&](auto in, auto out) { to_windows<double>(image, in, out); }, x);
  CHECK(y == std::vector<double>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
}

TEST_CASE("from windows is the inverse of to windows, of every image alone") {
  for (const std::int64_t side : {2, 3, 6}) {
    const Image image = image_with(side);
    const std::vector<double> x = random_operand<double>(image.size(), 1);
    const auto cut = result_of(
        image, [&](auto in, auto out) { to_windows<double>(image, in, out); }, x);
    CHECK((cut == x) == (side == 6));
    CHECK(result_of(
              image, [&](auto in, auto out) { from_windows<double>(image, in, out); }, cut) == x);
  }
}

TEST_CASE("a shift moves rows and columns around the image, and back") {
  const Image image{.images = 1, .rows = 3, .side = 3, .width = 1};
  const std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto by = [&](std::int64_t n, const std::vector<double>& of) {
    return result_of(
        image, [&](auto in, auto out) { shift<double>(image, n, in, out); }, of);
  };
  CHECK(by(1, x) == std::vector<double>{4, 5, 3, 7, 8, 6, 1, 2, 0});
  CHECK(by(-1, by(1, x)) == x);
  CHECK(by(3, x) == x);
}

TEST_CASE("biases of a window depend on the offset alone, and every offset has one") {
  const std::int64_t side = 3, heads = 2, tokens = 9, offsets = 25;
  std::vector<double> table(offsets * heads), y(heads * tokens * tokens);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i);
  window_bias<double>(side, heads, table, y);
  std::vector<double> uses(table.size(), 0);
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t q = 0; q < tokens; ++q) {
      for (std::int64_t k = 0; k < tokens; ++k) {
        // relative_coords of the published code: shifted to begin at 0, rows times 2 side - 1.
        const std::int64_t down = q / 3 - k / 3 + 2, right = q % 3 - k % 3 + 2;
        const double found = y[(h * tokens + q) * tokens + k];
        CHECK(found == static_cast<double>((down * 5 + right) * heads + h));
        uses[static_cast<std::size_t>(found)] += 1;
      }
    }
  }
  // The gradient of ones: how many pairs have an offset, (3 - |down|)(3 - |right|).
  std::vector<double> dtable(table.size(), 0);
  window_bias_gradient<double>(side, heads, std::vector<double>(y.size(), 1), dtable);
  CHECK(dtable == uses);
  CHECK(dtable[static_cast<std::size_t>(12 * heads)] == 9);
  CHECK(dtable[0] == 1);
}

TEST_CASE("a mask hides what came from opposite edges of an image that was moved") {
  const std::int64_t rows = 6, side = 2, heads = 2, tokens = 4, windows = 9;
  const Image image{.images = 0, .rows = rows, .side = side, .width = 0};
  const std::vector<double> x(2 * windows * heads * tokens * tokens, 0.5);
  std::vector<double> y(x.size());
  window_mask<double>(image, 0, heads, x, y);
  // A token at (r, c) of the moved image was at (r + 1, c + 1) modulo 6 before. Two of one window
  // see each other if they were neighbours there, not by way of the edge.
  const auto was = [&](std::int64_t window, std::int64_t token, bool row) {
    const std::int64_t at =
        row ? window / 3 * side + token / side : window % 3 * side + token % side;
    return (at + 1) % rows;
  };
  std::int64_t hidden = 0;
  for (std::size_t place = 0; place < y.size(); ++place) {
    const auto at = static_cast<std::int64_t>(place);
    const std::int64_t window = at / (heads * tokens * tokens) % windows;
    const std::int64_t query = at / tokens % tokens, key = at % tokens;
    const bool far = std::abs(was(window, query, true) - was(window, key, true)) >= side ||
                     std::abs(was(window, query, false) - was(window, key, false)) >= side;
    CHECK(y[place] == (far ? -99.5 : 0.5));
    hidden += far ? 1 : 0;
  }
  CHECK(hidden > 0);
  // A part that begins with another window.
  std::vector<double> rest(x.size() / 2);
  window_mask<double>(image, 4, heads, In<double>(x).first(rest.size()), rest);
  const std::size_t four = 4 * heads * tokens * tokens;
  CHECK(rest == std::vector<double>(y.begin() + four, y.begin() + four + rest.size()));
}

}  // namespace
}  // namespace stratagem::kernels::windows_test
