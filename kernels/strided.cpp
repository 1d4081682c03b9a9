// Walks through all indices, the last dimension first.
#include "kernels/strided.hpp"

#include <cstddef>

namespace stratagem::kernels {

std::int64_t Strided::size() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  return elements;
}

Strided merged(const Strided& shape) {
  Strided result;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
    const std::int64_t size = shape.sizes[d], from = shape.from[d], to = shape.to[d];
    if (size == 1) continue;
    if (!result.sizes.empty() && result.from.back() == from * size &&
        result.to.back() == to * size) {
      result.sizes.back() *= size;
      result.from.back() = from;
      result.to.back() = to;
    } else {
      result.sizes.push_back(size);
      result.from.push_back(from);
      result.to.push_back(to);
    }
  }
  return result;
}

void expect_within(const Strided& shape, std::size_t x, std::size_t y) {
  expects(shape.from.size() == shape.sizes.size() && shape.to.size() == shape.sizes.size(),
          "a copy has two distances for every dimension");
  if (shape.size() == 0) return;
  std::int64_t last_from = 0, last_to = 0;
  bool forward = true;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
    forward = forward && shape.from[d] >= 0 && shape.to[d] >= 0;
    last_from += (shape.sizes[d] - 1) * shape.from[d];
    last_to += (shape.sizes[d] - 1) * shape.to[d];
  }
  expects(
      forward && last_from < static_cast<std::int64_t>(x) && last_to < static_cast<std::int64_t>(y),
      "a copy stays within its operands");
}

template <typename T>
void copy_strided(const Strided& shape, bool adds, In<T> x, Out<T> y) {
  expect_within(shape, x.size(), y.size());
  const std::int64_t size = shape.size();
  std::vector<std::int64_t> at(shape.sizes.size(), 0);
  std::int64_t from = 0, to = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    y[to] = adds ? static_cast<T>(y[to] + x[from]) : x[from];
    for (std::size_t d = at.size(); d-- > 0;) {
      from += shape.from[d];
      to += shape.to[d];
      if (++at[d] < shape.sizes[d]) break;
      from -= at[d] * shape.from[d];
      to -= at[d] * shape.to[d];
      at[d] = 0;
    }
  }
}

template void copy_strided<float>(const Strided&, bool, In<float>, Out<float>);
template void copy_strided<double>(const Strided&, bool, In<double>, Out<double>);

}  // namespace stratagem::kernels
