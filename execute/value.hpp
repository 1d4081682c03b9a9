// What a rank has of a tensor: which part, and its elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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

/// A list of fixed length, in memory of its own, where it begins with zeros, or in somebody else's.
/// Copies have memory of their own.
template <typename E>
class Elements {
 public:
  Elements() = default;
  explicit Elements(std::size_t size) : own_(size), elements_(own_) {}
  explicit Elements(std::span<E> place) : elements_(place) {}
  Elements(const Elements& other) : own_(other.begin(), other.end()), elements_(own_) {}
  Elements(Elements&& other) noexcept = default;
  Elements& operator=(const Elements& other) { return *this = Elements(other); }
  Elements& operator=(Elements&& other) noexcept = default;
  ~Elements() = default;

  [[nodiscard]] E* data() const { return elements_.data(); }
  [[nodiscard]] E* begin() const { return elements_.data(); }
  [[nodiscard]] E* end() const { return elements_.data() + elements_.size(); }
  [[nodiscard]] std::size_t size() const { return elements_.size(); }
  [[nodiscard]] bool empty() const { return elements_.empty(); }
  E& operator[](std::size_t i) const { return elements_[i]; }

 private:
  std::vector<E> own_;
  std::span<E> elements_;
};

/// Elements in the order of the region, in one of three lists. T is the type in which everything is
/// computed, whatever the model says.
template <typename T>
struct Value {
  Region region;
  Elements<T> data;
  Elements<std::int8_t> bytes;        ///< of masks of dropout
  std::vector<std::int64_t> numbers;  ///< of tokens and labels
  int buffer = -1;                    ///< of the arena in which it lies
};
template <typename T>
using Shared = std::shared_ptr<Value<T>>;

/// A value of zeros, in memory of its own.
template <typename T>
Shared<T> zeros(Region region);

template <typename T>
void clear(const Value<T>& value) {
  std::ranges::fill(value.data, T{});
  std::ranges::fill(value.bytes, std::int8_t{});
}

/// Can a value of region `whole` show `part`? Where that is one of several partial values and the
/// whole is not, the first of them is the whole and the others are zero.
bool shows(const Region& whole, const Region& part);

/// The part of a value: itself, if it is all. Expects that it shows it.
template <typename T>
Shared<T> view(const Shared<T>& whole, const Region& part);

/// Calls `run(in_whole, in_part, length)` for all stretches of elements of `part` that lie side by
/// side in `whole` as well; both see all of their masks, and that of `part` lies within.
void for_each_stretch(const strategies::Mask& whole, const strategies::Mask& part,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run);

}  // namespace stratagem::execute
