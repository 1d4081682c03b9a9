// A part of a tensor on a rank: which part, and its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/graph.hpp"
#include "model/tensor.hpp"
#include "placement/grid.hpp"
#include "placement/mask.hpp"
#include "program/operation.hpp"

namespace stratagem::execute {

/// A part of a tensor: what a mask sees or, of that in its order of elements, those from `begin` to
/// `end`.
struct Region {
  placement::Mask mask;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Region&, const Region&) = default;

  [[nodiscard]] std::vector<std::int64_t> shape() const;  ///< of what the mask sees
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  [[nodiscard]] bool is_run() const;  ///< not all of what the mask sees
};

/// A region under the number of another one's partial value, where numbers are but names.
Region named_as(Region region, const Region& other);

/// All that a mask sees.
Region all_of(const placement::Mask& mask);

/// What the device at `coordinates` of a grid has of a tensor that lies there as an operand says.
/// Runs are of equal length, the last ones shorter or empty.
Region region_of(const program::Operand& operand, const std::vector<std::int64_t>& shape,
                 const placement::Grid& grid, const std::vector<int>& coordinates);

/// The same for a device on one of several grids; none is looked at where the operand says what the
/// device has itself.
Region region_of(const program::Operand& operand, const std::vector<std::int64_t>& shape,
                 const std::vector<placement::Grid>& grids, int grid, int device);

/// The places in the whole tensor of the elements of a region of it, or of a part of it, in order.
std::vector<std::int64_t> places(const model::Origin& origin, const Region& region);

/// Memory that goes back to where it came from with its last user.
using Memory = std::shared_ptr<std::byte>;

/// A list of fixed length, in memory of its own, where it begins with zeros, or in somebody else's,
/// which may be a GPU's: then nothing here looks into it. Copies are of what lies on the host, and
/// have memory of their own.
template <typename E>
class Elements {
 public:
  Elements() = default;
  explicit Elements(std::size_t size) : own_(size), elements_(own_) {}
  explicit Elements(std::vector<E> values) : own_(std::move(values)), elements_(own_) {}
  explicit Elements(std::span<E> place) : elements_(place) {}
  /// As many elements from the beginning of what is allocated.
  Elements(Memory memory, std::size_t size)
      : memory_(std::move(memory)), elements_(reinterpret_cast<E*>(memory_.get()), size) {}
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
  Memory memory_;
  std::span<E> elements_;
};

/// In which of a value's lists its elements are.
enum class List : std::uint8_t { data, wide, bytes };

/// What a tensor's elements are held as. `wide`: statistics of rows, losses and the gradient of the
/// loss, which are fp32 where T has two bytes; elsewhere they are data like all others.
List list_of(const model::Graph& graph, model::TensorId tensor);

/// Elements in the order of the region, in one of four lists. T is the type in which everything is
/// held, whatever the model says.
template <typename T>
struct Value {
  Region region;
  Elements<T> data;
  Elements<float> wide;            ///< see `List`
  Elements<std::int8_t> bytes;     ///< of masks of dropout
  Elements<std::int64_t> numbers;  ///< of tokens and labels
  int buffer = -1;                 ///< of the arena in which it lies
};
template <typename T>
using Shared = std::shared_ptr<Value<T>>;

/// Calls `look` with the list that a value has; with that of `data` if it has no elements.
template <typename T, typename Look>
auto with_list(const Value<T>& value, const Look& look) {
  if (!value.bytes.empty()) return look(value.bytes);
  if (!value.wide.empty()) return look(value.wide);
  return look(value.data);
}

/// Where a value begins; null if it has no elements.
template <typename T>
const void* place_of(const Value<T>& value) {
  return with_list(value, [](const auto& list) -> const void* { return list.data(); });
}

/// Do two values begin at the same place? Not where they have no elements.
template <typename T>
bool same_place(const Value<T>& one, const Value<T>& other) {
  return place_of(one) != nullptr && place_of(one) == place_of(other);
}

/// What has two bytes on a device has four where the host looks at it, and in messages.
template <typename T>
using OnHost = std::conditional_t<sizeof(T) == 2, float, T>;

/// Where numbers lie is `wide` in a type of two bytes alone.
template <typename T>
constexpr bool has_wide = sizeof(T) == 2;

/// Bytes that so many elements of a list take.
template <typename T>
std::size_t bytes_of(List list, std::size_t elements) {
  if (list == List::bytes) return elements;
  return elements * (list == List::wide && has_wide<T> ? sizeof(float) : sizeof(T));
}

/// A value in memory that has room for it, with whatever lies there.
template <typename T>
Shared<T> value_in(Memory memory, List list, Region region);

/// A value of zeros, in memory of its own on the host.
template <typename T>
Shared<T> zeros(Region region);

/// Can a value of region `whole` show `part`? Where that is one of several partial values and the
/// whole is not, the first of them is the whole and the others are zero.
bool shows(const Region& whole, const Region& part);

/// Calls `run(in_whole, in_part, length)` for all stretches of elements of `part` that lie side by
/// side in `whole` as well; both see all of their masks, and that of `part` lies within.
void for_each_stretch(const placement::Mask& whole, const placement::Mask& part,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run);

}  // namespace stratagem::execute
