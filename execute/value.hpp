// What a rank has of a tensor: which part, and its elements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/tensor.hpp"
#include "strategies/grid.hpp"
#include "strategies/mask.hpp"
#include "strategies/operation.hpp"

namespace stratagem::execute {

/// A part of a tensor: what a mask sees or, of that in its order of elements, those from `begin` to
/// `end`.
struct Region {
  strategies::Mask mask;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Region&, const Region&) = default;

  [[nodiscard]] std::vector<std::int64_t> shape() const;  ///< of what the mask sees
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  [[nodiscard]] bool is_run() const;  ///< not all of what the mask sees
};

/// All that a mask sees.
Region all_of(const strategies::Mask& mask);

/// What the device at `coordinates` of a grid has of a tensor that lies there as an operand says.
/// Runs are of equal length, the last ones shorter or empty.
Region region_of(const strategies::Operand& operand, const std::vector<std::int64_t>& shape,
                 const strategies::Grid& grid, const std::vector<int>& coordinates);

/// The places in the whole tensor of the elements of a region of it, or of a part of it, in order.
std::vector<std::int64_t> places(const model::Origin& origin, const Region& region);

/// Elements in the order of the region, in one of three lists. T is the type in which everything is
/// computed, whatever the model says.
template <typename T>
struct Value {
  Region region;
  std::vector<T> data;
  std::vector<std::int8_t> bytes;     ///< of masks of dropout
  std::vector<std::int64_t> numbers;  ///< of tokens and labels
};
template <typename T>
using Shared = std::shared_ptr<Value<T>>;

/// A value of zeros.
template <typename T>
Shared<T> zeros(Region region);

/// Can a value of region `whole` show `part`? Where that is one of several partial values and the
/// whole is not, the first of them is the whole and the others are zero.
bool shows(const Region& whole, const Region& part);

/// The part of a value: itself, if it is all. Expects that it shows it.
template <typename T>
Shared<T> view(const Shared<T>& whole, const Region& part);

/// Calls `run(in_whole, in_part, length)` for all stretches of elements of `part` that lie side by
/// side
/// in `whole` as well; both see all of their masks, and that of `part` lies within.
void for_each_stretch(const strategies::Mask& whole, const strategies::Mask& part,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run);

}  // namespace stratagem::execute
