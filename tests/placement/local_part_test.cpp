// What a device has of a tensor.
#include "placement/local_part.hpp"

#include "tests/catch.hpp"

namespace stratagem::placement::local_part_test {

TEST_CASE("what devices share out is cut along the first dimension that has equal parts") {
  const Grid grid{.axes = {{.name = "data", .size = 4}}};
  const auto cut = [&](std::vector<std::int64_t> shape) {
    model::Tensor tensor{};
    tensor.shape = std::move(shape);
    const auto layout = divided(Layout(1), 0, tensor, grid);
    return layout ? layout->front().dim : -1;
  };
  CHECK(cut({4, 3}) == 0);
  CHECK(cut({4, 8}) == 0);
  CHECK(cut({3, 8}) == 1);
  CHECK(cut({3, 5, 4}) == 2);
  CHECK(cut({3, 6}) == -1);
}

}  // namespace stratagem::placement::local_part_test
