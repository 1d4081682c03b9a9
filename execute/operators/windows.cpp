// Tokens of images: cut into windows, moved by half of one, and their mean.
#include "kernels/windows.hpp"

#include <algorithm>

#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// Images of a value; a token has as many elements as are left for it.
template <typename T>
kernels::Image image_of(const Application<T>& a, const Value<T>& value) {
  const auto [rows, side] = a.forward().image;
  const std::int64_t width = value.region.shape().back();
  const std::int64_t size = rows * rows * width;
  return {.images = value.region.size() / size, .rows = rows, .side = side, .width = width};
}

/// Backward, the result is added to the gradient.
template <typename T, typename Kernel>
void run(const Application<T>& a, const Kernel& kernel) {
  if (a.is_forward()) return kernel(a.out(0));
  std::vector<T> back(a.outputs[0]->data.size());
  kernel(kernels::Out<T>(back));
  std::ranges::transform(back, a.out(0), a.out(0).begin(), std::plus());
}

template <typename T>
void windows(const Application<T>& a, bool cuts) {
  // The tensor whose rows are the image's tokens: in a merge the other has fewer, wider ones.
  const kernels::Image image = image_of(a, a.is_forward() == cuts ? *a.inputs[0] : *a.outputs[0]);
  run(a, [&](kernels::Out<T> to) {
    cuts == a.is_forward() ? kernels::to_windows<T>(image, a.in(0), to)
                           : kernels::from_windows<T>(image, a.in(0), to);
  });
}

/// By half a window, up and to the left, or back.
template <typename T>
void shift(const Application<T>& a, bool back) {
  const std::int64_t half = a.forward().image.side / 2;
  run(a, [&](kernels::Out<T> to) {
    kernels::shift<T>(image_of(a, *a.inputs[0]), back == a.is_forward() ? -half : half, a.in(0),
                      to);
  });
}

template <typename T>
void window_bias(const Application<T>& a) {
  const std::int64_t side = a.forward().image.side;
  const std::int64_t heads = (a.is_forward() ? *a.outputs[0] : *a.inputs[0]).region.shape()[0];
  a.is_forward() ? kernels::window_bias<T>(side, heads, a.in(0), a.out(0))
                 : kernels::window_bias_gradient<T>(side, heads, a.in(0), a.out(0));
}

template <typename T>
void window_mask(const Application<T>& a) {
  const auto& scores = a.inputs[0]->region;
  const kernels::Image image{
      .images = 0, .rows = a.op.image.rows, .side = a.op.image.side, .width = 0};
  kernels::window_mask<T>(image, scores.mask.ranges[0].begin, scores.shape()[1], a.in(0), a.out(0));
}

/// (batch, tokens, width) -> (batch, width); backward, every token gets its share.
template <typename T>
void token_mean(const Application<T>& a) {
  const std::vector<std::int64_t> all =
      (a.is_forward() ? *a.inputs[0] : *a.outputs[0]).region.shape();
  const T share = T{1} / static_cast<T>(all[1]);
  for (std::int64_t b = 0; b < all[0]; ++b) {
    for (std::int64_t at = 0; at < all[1] * all[2]; ++at) {
      const std::int64_t one = b * all[1] * all[2] + at, mean = b * all[2] + at % all[2];
      a.is_forward() ? a.out(0)[mean] += share * a.in(0)[one]
                     : a.out(0)[one] += share * a.in(0)[mean];
    }
  }
}

}  // namespace

std::vector<Execution> on_images() {
  std::vector<Execution> rows = {
      computed("windows", [](const auto& a) { windows(a, true); }),
      computed("from_windows", [](const auto& a) { windows(a, false); }),
      computed("shift", [](const auto& a) { shift(a, false); }),
      computed("shift_back", [](const auto& a) { shift(a, true); }),
      computed("window_bias", [](const auto& a) { window_bias(a); }),
      computed("window_mask", [](const auto& a) { window_mask(a); }),
      computed("token_mean", [](const auto& a) { token_mean(a); }),
  };
  for (Execution& row : rows) row.not_on_gpu = "images on a GPU";
  return rows;
}

}  // namespace stratagem::execute
