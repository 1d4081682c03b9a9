// How a part of an array lies in the whole.
#pragma once

#include "execute/value.hpp"
#include "kernels/part.hpp"

namespace stratagem::execute {

template <typename Run>
void for_each_stretch(const strategies::Mask& whole, const strategies::Mask& part, const Run& run) {
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

}  // namespace stratagem::execute
