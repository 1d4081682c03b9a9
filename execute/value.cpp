// Parts of parts.
#include "execute/value.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "kernels/part.hpp"

namespace stratagem::execute {

using strategies::Mask;

std::vector<std::int64_t> Region::shape() const {
  std::vector<std::int64_t> result;
  for (const strategies::Range& range : mask.ranges) result.push_back(range.end - range.begin);
  return result;
}

bool Region::is_run() const { return *this != all_of(mask); }

Region all_of(const Mask& mask) {
  Region region{.mask = mask, .begin = 0, .end = 1};
  for (const std::int64_t size : region.shape()) region.end *= size;
  return region;
}

Region region_of(const strategies::Operand& operand, const std::vector<std::int64_t>& shape,
                 const strategies::Grid& grid, const std::vector<int>& coordinates) {
  Region region = all_of(strategies::mask_at(operand.layout, shape, grid.sizes(), coordinates));
  if (operand.shards.empty()) return region;
  std::int64_t parts = 1, index = 0;
  for (const int axis : operand.shards) {
    parts *= grid.axes[axis].size;
    index = index * grid.axes[axis].size + coordinates[axis];
  }
  const std::int64_t length = (region.end + parts - 1) / parts;
  region.begin = std::min(index * length, region.end);
  region.end = std::min(region.begin + length, region.end);
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
    const strategies::Range& outer = whole.ranges[d];
    const strategies::Range& inner = part.ranges[d];
    place.whole.push_back(outer.end - outer.begin);
    place.begin.push_back(inner.begin - outer.begin);
    place.extent.push_back(inner.end - inner.begin);
  }
  kernels::for_each_run(place, [&](std::int64_t here, std::int64_t there, std::int64_t length) {
    run(there, here, length);
  });
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
bool refines(const strategies::ValuePart& whole, const strategies::ValuePart& part) {
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

template <typename T>
Shared<T> view(const Shared<T>& whole, const Region& part) {
  if (whole->region == part) return whole;
  expects(shows(whole->region, part), "what a task reads is here");
  const bool mask = !whole->bytes.empty();
  const auto size = static_cast<std::size_t>(part.size());
  auto result = std::make_shared<Value<T>>();
  result->region = part;
  if (mask) {
    result->bytes = Elements<std::int8_t>(size);
  } else {
    result->data = Elements<T>(size);
  }
  const strategies::ValuePart& from = whole->region.mask.value;
  const strategies::ValuePart& to = part.mask.value;
  const bool first = to.index % (to.count / from.count) == 0;
  const auto copy = [&](std::int64_t there, std::int64_t here, std::int64_t length) {
    std::copy_n(whole->data.begin() + there, length, result->data.begin() + here);
  };
  if (mask) {
    for_each_stretch(whole->region.mask, part.mask, [&](auto there, auto here, auto length) {
      std::copy_n(whole->bytes.begin() + there, length, result->bytes.begin() + here);
    });
  } else if (!first) {
    return result;
  } else if (whole->region.mask.ranges == part.mask.ranges) {
    copy(part.begin - whole->region.begin, 0, part.size());
  } else {
    for_each_stretch(whole->region.mask, part.mask, copy);
  }
  return result;
}

#define INSTANTIATE(T)                 \
  template Shared<T> zeros<T>(Region); \
  template Shared<T> view<T>(const Shared<T>&, const Region&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace stratagem::execute
