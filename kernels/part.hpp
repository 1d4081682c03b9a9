// A part of an array: a range of indices in every dimension.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace stratagem::kernels {

/// Elements [begin, begin + extent) of an array of sizes `whole`, dimension by dimension.
struct Part {
  std::vector<std::int64_t> whole;
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> extent;

  [[nodiscard]] std::int64_t size() const;
};

/// All of an array of these sizes.
Part whole_of(const std::vector<std::int64_t>& sizes);

/// Calls `run(here, there, length)` for every stretch of elements that lie side by side in the part
/// as well as in the whole: `here` counts in the part, `there` in the whole. Throws BrokenPromise
/// for a part that reaches out of the whole.
void for_each_run(
    const Part& part,
    const std::function<void(std::int64_t here, std::int64_t there, std::int64_t length)>& run);

}  // namespace stratagem::kernels
