// Walks through a part of an array in runs that are contiguous in the whole.
#include "kernels/part.hpp"

#include <cstddef>

#include "base/input_error.hpp"

namespace stratagem::kernels {
namespace {

void expect_inside(const Part& part) {
  bool inside = part.begin.size() == part.whole.size() && part.extent.size() == part.whole.size();
  for (std::size_t d = 0; inside && d < part.whole.size(); ++d)
    inside = part.begin[d] >= 0 && part.extent[d] >= 0 &&
             part.begin[d] + part.extent[d] <= part.whole[d];
  expects(inside, "a part lies inside its whole");
}

/// The first of the trailing dimensions over which a run reaches: all behind it are whole.
std::size_t first_of_run(const Part& part) {
  std::size_t d = part.whole.size();
  while (d > 0) {
    --d;
    if (part.extent[d] != part.whole[d]) break;
  }
  return d;
}

}  // namespace

std::int64_t Part::size() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : extent) elements *= size;
  return elements;
}

Part whole_of(const std::vector<std::int64_t>& sizes) {
  return {.whole = sizes, .begin = std::vector<std::int64_t>(sizes.size(), 0), .extent = sizes};
}

void for_each_run(const Part& part,
                  const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run) {
  expect_inside(part);
  if (part.size() == 0) return;
  const std::size_t inner = first_of_run(part);
  std::int64_t length = 1;
  for (std::size_t d = inner; d < part.extent.size(); ++d) length *= part.extent[d];
  std::vector<std::int64_t> at(inner, 0);
  for (std::int64_t here = 0; here < part.size(); here += length) {
    std::int64_t there = 0;
    for (std::size_t d = 0; d < part.whole.size(); ++d)
      there = there * part.whole[d] + part.begin[d] + (d < inner ? at[d] : 0);
    run(here, there, length);
    for (std::size_t d = inner; d > 0; --d) {  // the next place of the outer dimensions
      if (++at[d - 1] < part.extent[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

}  // namespace stratagem::kernels
