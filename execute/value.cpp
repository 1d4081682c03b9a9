// Cuts regions of tensors out of larger ones, and lists their elements.
#include "execute/value.hpp"

#include <algorithm>

#include "execute/types.hpp"
#include "kernels/part.hpp"

namespace stratagem::execute {

using placement::Mask;

std::vector<std::int64_t> Region::shape() const {
  std::vector<std::int64_t> result;
  for (const placement::Range& range : mask.ranges) result.push_back(range.end - range.begin);
  return result;
}

bool Region::is_run() const { return *this != all_of(mask); }

Region all_of(const Mask& mask) {
  Region region{.mask = mask, .begin = 0, .end = 1};
  for (const std::int64_t size : region.shape()) region.end *= size;
  return region;
}

Region region_of(const program::Operand& operand, const std::vector<std::int64_t>& shape,
                 const placement::Grid& grid, const std::vector<int>& coordinates) {
  Region region = all_of(placement::mask_at(operand.layout, shape, grid.sizes(), coordinates));
  if (operand.shards.empty()) return region;
  for (const int axis : operand.shards) {
    const std::int64_t parts = grid.axes[axis].size;
    const std::int64_t length = (region.size() + parts - 1) / parts;
    region.begin = std::min(region.begin + coordinates[axis] * length, region.end);
    region.end = std::min(region.begin + length, region.end);
  }
  return region;
}

Region region_of(const program::Operand& operand, const std::vector<std::int64_t>& shape,
                 const std::vector<placement::Grid>& grids, int grid, int device) {
  if (!operand.masks.empty()) return all_of(operand.masks.front());
  const placement::Grid& on = grids[grid];
  return region_of(operand, shape, on, on.coordinates(on.position(device)));
}

Region named_as(Region region, const Region& other) {
  region.mask.value = other.mask.value;
  return region;
}

std::vector<std::int64_t> places(const model::Origin& origin, const Region& region) {
  const std::vector<std::int64_t> shape = region.shape();
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(region.size()));
  for (std::int64_t i = region.begin; i < region.end; ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += (rest % shape[d] + region.mask.ranges[d].begin + origin.begin[d]) * stride;
      rest /= shape[d];
      stride *= origin.shape[d];
    }
    result.push_back(place);
  }
  return result;
}

void for_each_stretch(const Mask& whole, const Mask& part,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run) {
  kernels::Part place;
  for (std::size_t d = 0; d < whole.ranges.size(); ++d) {
    const placement::Range& outer = whole.ranges[d];
    const placement::Range& inner = part.ranges[d];
    place.whole.push_back(outer.end - outer.begin);
    place.begin.push_back(inner.begin - outer.begin);
    place.extent.push_back(inner.end - inner.begin);
  }
  kernels::for_each_run(place, [&](std::int64_t here, std::int64_t there, std::int64_t length) {
    run(there, here, length);
  });
}

List list_of(const model::Graph& graph, model::TensorId tensor) {
  const model::Role role = graph.tensors[tensor].role;
  const bool bytes = graph.tensors[tensor].type == model::DataType::int8;
  if (role == model::Role::mask && bytes) return List::bytes;
  const bool wide = role == model::Role::statistic || tensor == graph.loss ||
                    tensor == graph.gradient_of[graph.loss];
  return wide ? List::wide : List::data;
}

template <typename T>
Shared<T> value_in(Memory memory, List list, Region region) {
  const auto size = static_cast<std::size_t>(region.size());
  auto value = std::make_shared<Value<T>>();
  value->region = std::move(region);
  if (list == List::bytes) {
    value->bytes = Elements<std::int8_t>(std::move(memory), size);
  } else if (list == List::wide && has_wide<T>) {
    value->wide = Elements<float>(std::move(memory), size);
  } else {
    value->data = Elements<T>(std::move(memory), size);
  }
  return value;
}

template <typename T>
Shared<T> zeros(Region region) {
  auto value = std::make_shared<Value<T>>();
  value->data = Elements<T>(static_cast<std::size_t>(region.size()));
  value->region = std::move(region);
  return value;
}

namespace {

bool within(const Mask& whole, const Mask& part) {
  for (std::size_t d = 0; d < whole.ranges.size(); ++d) {
    if (part.ranges[d].begin < whole.ranges[d].begin || part.ranges[d].end > whole.ranges[d].end)
      return false;
  }
  return true;
}

/// Does the one count as a partial value of the other?
bool refines(const placement::ValuePart& whole, const placement::ValuePart& part) {
  return whole == part ||
         (part.count % whole.count == 0 && part.index / (part.count / whole.count) == whole.index);
}

}  // namespace

bool shows(const Region& whole, const Region& part) {
  if (whole.mask.ranges.size() != part.mask.ranges.size()) return false;
  if (!refines(whole.mask.value, part.mask.value)) return false;
  if (whole.mask.ranges == part.mask.ranges)
    return whole.begin <= part.begin && part.end <= whole.end;
  return !whole.is_run() && !part.is_run() && within(whole.mask, part.mask);
}

#define INSTANTIATE(T) template Shared<T> value_in<T>(Memory, List, Region);
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE
template Shared<float> zeros<float>(Region);
template Shared<double> zeros<double>(Region);

}  // namespace stratagem::execute
