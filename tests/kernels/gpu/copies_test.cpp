// Copies at distances, rotary positions and the search for infinities on a GPU, against the host.
#include "kernels/finite.hpp"
#include "kernels/rotary.hpp"
#include "kernels/strided.hpp"
#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem::kernels;

namespace {

/// Elements that a side of a copy needs.
std::int64_t reach(const Strided& shape, const std::vector<std::int64_t>& distances) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) last += (shape.sizes[d] - 1) * distances[d];
  return last + 1;
}

/// One element, a transpose, heads of whole packets and of odd sizes, a part, rows read twice, five
/// dimensions, and more elements than a few blocks have.
const std::vector<Strided> copies = {
    {.sizes = {1}, .from = {1}, .to = {1}},
    {.sizes = {17, 33}, .from = {1, 17}, .to = {33, 1}},
    {.sizes = {2, 8, 5, 64}, .from = {2560, 320, 64, 1}, .to = {2560, 64, 512, 1}},
    {.sizes = {2, 5, 3, 7}, .from = {105, 21, 7, 1}, .to = {105, 7, 35, 1}},
    {.sizes = {13, 24}, .from = {40, 1}, .to = {24, 1}},
    {.sizes = {4, 3, 16}, .from = {16, 0, 1}, .to = {48, 16, 1}},
    {.sizes = {2, 3, 2, 3, 2}, .from = {36, 12, 6, 2, 1}, .to = {1, 2, 6, 12, 36}},
    {.sizes = {700'003}, .from = {1}, .to = {1}}};

TEST_CASE("copies at distances change no bit, and sums agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Strided& shape : copies) {
      for (const bool adds : {false, true}) {
        CAPTURE(shape.sizes, adds, sizeof(T));
        const auto x = random_both<T>(reach(shape, shape.from), 1);
        auto y = random_both<T>(reach(shape, shape.to), 2);
        copy_strided<T, T>(stream(), shape, adds, x, y.device);
        copy_strided<double>(shape, adds, x.values, y.values);
        CHECK(error_of(y.device, y.values) <= (adds ? tolerance<T> : 0));
      }
    }
  });
}

TEST_CASE("copies to and from fp32, as messages are") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Strided& shape : copies) {
      CAPTURE(shape.sizes, sizeof(T));
      const auto x = random_both<T>(reach(shape, shape.from), 1);
      auto wide = random_both<float>(reach(shape, shape.to), 2);
      copy_strided<T, float>(stream(), shape, false, x, wide.device);
      copy_strided<double>(shape, false, x.values, wide.values);
      CHECK(error_of(wide.device, wide.values) == 0);
      auto back = random_both<T>(reach(shape, shape.to), 3);
      const Strided there{.sizes = shape.sizes, .from = shape.to, .to = shape.to};
      copy_strided<float, T>(stream(), there, true, wide.device, back.device);
      copy_strided<double>(there, true, wide.values, back.values);
      CHECK(error_of(back.device, back.values) <= tolerance<T>);
    }
  });
}

TEST_CASE("copies of masks") {
  if (no_device()) return;
  std::vector<std::int8_t> values(96);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int8_t>(i % 2);
  const auto x = on_device(stream(), values);
  const auto y = room<std::int8_t>(32);
  copy_strided<std::int8_t, std::int8_t>(
      stream(), {.sizes = {2, 16}, .from = {48, 1}, .to = {16, 1}}, false, x, y);
  const auto copied = on_host(stream(), y);
  for (std::size_t i = 0; i < copied.size(); ++i) CHECK(copied[i] == values[i / 16 * 48 + i % 16]);
}

TEST_CASE("rotary positions and their gradients agree with fp64, from any place on") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Rotary& shape :
         {Rotary{1, 1, 2, 0}, Rotary{3, 5, 6, 7}, Rotary{40, 130, 64, 1000}}) {
      CAPTURE(shape.heads, shape.sequence, shape.size, sizeof(T));
      const std::int64_t size = shape.heads * shape.sequence * shape.size;
      const auto x = random_both<T>(size, 1);
      const auto y = room<T>(size), back = room<T>(size);
      std::vector<double> reference(size);
      rotary<T>(stream(), shape, x, y);
      rotary<double>(shape, x.values, reference);
      CHECK(error_of(y, reference) <= tolerance<T>);
      rotary_gradient<T>(stream(), shape, x, back);
      rotary_gradient<double>(shape, x.values, reference);
      CHECK(error_of(back, reference) <= tolerance<T>);
    }
  });
}

TEST_CASE("one infinity among many numbers is found, wherever it is") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{100'003}}) {
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
          auto values = random_operand<T>(static_cast<std::int64_t>(size), 1);
          const auto found = on_device(stream(), std::vector<std::int8_t>{0});
          find_not_finite<T>(stream(), on_device(stream(), values), found);
          CHECK(on_host(stream(), found)[0] == 0);
          CHECK(all_finite<T>(values));
          values[place] = static_cast<T>(bad);
          find_not_finite<T>(stream(), on_device(stream(), values), found);
          CHECK(on_host(stream(), found)[0] == 1);
          CHECK_FALSE(all_finite<T>(values));
        }
      }
    }
  });
}

}  // namespace
