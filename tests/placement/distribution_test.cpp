// Layouts and masks answer the same questions about the parts that they leave on devices.
#include "placement/distribution.hpp"

#include "tests/catch.hpp"

namespace stratagem::placement::distribution_test {

namespace {

const model::Tensor tensor{.name = "x", .shape = {6, 8}, .type = model::DataType::fp16};

/// What every device of a grid has, each as a mask.
Distribution one_by_one(const Layout& layout, const Grid& grid) {
  Distribution result;
  for (int i = 0; i < grid.count(); ++i) {
    const std::vector<int> at = grid.coordinates(i);
    result.push_back({grid.device(at), {.mask = mask_at(layout, tensor.shape, grid.sizes(), at)}});
  }
  return result;
}

}  // namespace

TEST_CASE("a layout says of each device what the masks of all devices say") {
  const Grid grid{.first_device = 3, .axes = {{"outer", 2, 2}, {"inner", 2, 1}}, .listed = {}};
  for (const Layout& layout :
       {Layout{{AxisRole::replica}, {1}}, Layout{{0}, {AxisRole::partial}}, Layout{{0}, {1}},
        Layout{{AxisRole::partial}, {AxisRole::partial}}}) {
    const Part all{layout};
    const Distribution each = one_by_one(layout, grid);
    REQUIRE(each.size() == 4);
    Bytes sum;
    for (const PlacedPart& one : each) {
      CHECK(shape_of(tensor, one.part, grid) == shape_of(tensor, all, grid));
      CHECK(bytes_of(tensor, one.part, grid) == bytes_of(tensor, all, grid));
      CHECK(is_partial(one.part) == is_partial(all));
      CHECK(part_on(each, one.device) == &one.part);
      sum += bytes_of(tensor, all, grid);
    }
    CHECK(bytes_of(tensor, each, grid) == sum);
    CHECK(completed(each) == one_by_one(completed(all).layout, grid));
    CHECK(part_on(each, 7) == nullptr);
  }
}

TEST_CASE("completed values have the same elements and are no sums") {
  const Grid grid{.first_device = 0, .axes = {{"ranks", 2, 1}}, .listed = {}};
  const Part partial{Layout{{AxisRole::partial}}};
  CHECK(is_partial(partial));
  CHECK(completed(partial) == Part{Layout{{AxisRole::replica}}});
  CHECK(bytes_of(tensor, partial, grid) == 6.0 * 8 * 2_B);
  CHECK(completed(Part{Layout{{0}}}) == Part{Layout{{0}}});
}

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

}  // namespace stratagem::placement::distribution_test
