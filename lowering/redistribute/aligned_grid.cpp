// Finds grid axes for masks: each device's mask is a number whose digits are its coordinates.
#include "lowering/redistribute/aligned_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::AxisRole;

namespace {

/// Layouts that a search may visit: some tenths of a second.
constexpr double many_layouts = 2000;

/// A dimension, or the value, divided into `count` equal parts; device i has part index[i].
struct DividedSide {
  std::size_t side = 0;
  AxisRole role;
  std::int64_t count = 1;
  std::vector<std::int64_t> index;
};

/// An axis: a number below `size` for every device, and what it does on every side.
struct Digit {
  int size = 1;
  std::vector<int> value;
  std::vector<AxisRole> roles;
};

/// Digits, and which must come before which.
struct Digits {
  std::vector<Digit> digits;
  std::vector<std::pair<std::size_t, std::size_t>> before;
};

std::vector<int> prime_factors(std::int64_t n) {
  std::vector<int> factors;
  for (int p = 2; n > 1; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return factors;
}

/// The pieces in the order of the first side's devices; nullopt where devices differ or repeat.
std::optional<std::vector<Piece>> in_order_of(const std::vector<Piece>& first,
                                              const std::vector<Piece>& pieces) {
  std::map<int, const Piece*> by_device;
  for (const Piece& piece : pieces) by_device[piece.device] = &piece;
  if (by_device.size() != pieces.size() || first.size() != pieces.size()) return std::nullopt;
  std::vector<Piece> ordered;
  for (const Piece& piece : first) {
    const auto found = by_device.find(piece.device);
    if (found == by_device.end()) return std::nullopt;
    ordered.push_back(*found->second);
  }
  return ordered;
}

/// One side's divisions into more than one part; nullopt if parts are unequal.
std::optional<std::vector<DividedSide>> divisions(std::size_t side,
                                                  const std::vector<Piece>& pieces,
                                                  const std::vector<std::int64_t>& shape) {
  std::vector<DividedSide> found;
  const std::int64_t values = pieces.front().mask.value.count;
  if (values > 1) found.push_back({side, {AxisRole::partial}, values, {}});
  for (const Piece& piece : pieces) {
    if (piece.mask.value.count != values) return std::nullopt;
    if (values > 1) found.front().index.push_back(piece.mask.value.index);
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const placement::Range part = pieces.front().mask.ranges[d];
    const std::int64_t length = part.end - part.begin;
    if (shape[d] % length != 0) return std::nullopt;
    DividedSide division{side, {static_cast<int>(d)}, shape[d] / length, {}};
    for (const Piece& piece : pieces) {
      const placement::Range range = piece.mask.ranges[d];
      if (range.end - range.begin != length || range.begin % length != 0) return std::nullopt;
      division.index.push_back(range.begin / length);
    }
    if (division.count > 1) found.push_back(std::move(division));
  }
  return found;
}

/// Adds a division's digits, outer factors first, to those that earlier sides have already.
void add_digits(Digits& to, const DividedSide& division, const std::vector<int>& factors,
                std::size_t sides) {
  std::int64_t weight = division.count;
  std::optional<std::size_t> outer;
  for (const int size : factors) {
    weight /= size;
    std::vector<int> value;
    for (const std::int64_t index : division.index)
      value.push_back(static_cast<int>(index / weight % size));
    const auto known = std::ranges::find_if(to.digits, [&](const Digit& digit) {
      return digit.size == size && digit.value == value &&
             digit.roles[division.side].dim == AxisRole::replica;
    });
    const auto place = static_cast<std::size_t>(known - to.digits.begin());
    if (known == to.digits.end())
      to.digits.push_back({size, std::move(value), std::vector<AxisRole>(sides)});
    to.digits[place].roles[division.side] = division.role;
    if (outer) to.before.emplace_back(*outer, place);
    outer = place;
  }
}

/// Adds digits that tell replicas apart, by the order of devices; false if the digits so far are
/// not independent.
bool add_replicas(Digits& to, std::size_t devices, std::size_t sides) {
  std::map<std::vector<int>, std::int64_t> times;
  std::vector<std::int64_t> rank;
  for (std::size_t i = 0; i < devices; ++i) {
    std::vector<int> all;
    for (const Digit& digit : to.digits) all.push_back(digit.value[i]);
    rank.push_back(times[all]++);
  }
  std::size_t classes = 1;
  for (const Digit& digit : to.digits) classes *= static_cast<std::size_t>(digit.size);
  const std::int64_t replicas = times.begin()->second;
  if (times.size() != classes) return false;
  if (!std::ranges::all_of(times, [&](const auto& t) { return t.second == replicas; }))
    return false;
  std::int64_t weight = replicas;
  for (const int size : prime_factors(replicas)) {
    weight /= size;
    Digit digit{size, {}, std::vector<AxisRole>(sides)};
    for (const std::int64_t index : rank)
      digit.value.push_back(static_cast<int>(index / weight % size));
    to.digits.push_back(std::move(digit));
  }
  return true;
}

/// Outer digits before inner ones, else as found or, `reversed`, the last found first; nullopt if
/// the sides contradict each other.
std::optional<std::vector<Digit>> sorted(const Digits& from, bool reversed) {
  std::vector<std::size_t> waiting(from.digits.size());
  std::iota(waiting.begin(), waiting.end(), 0);
  if (reversed) std::ranges::reverse(waiting);
  std::vector<Digit> order;
  while (!waiting.empty()) {
    const auto next = std::ranges::find_if(waiting, [&](std::size_t i) {
      return std::ranges::none_of(from.before, [&](const auto& pair) {
        return pair.second == i && std::ranges::find(waiting, pair.first) != waiting.end();
      });
    });
    if (next == waiting.end()) return std::nullopt;
    order.push_back(from.digits[*next]);
    waiting.erase(next);
  }
  return order;
}

/// Where there are many layouts, neighbours with equal roles become one digit.
std::vector<Digit> searchable(const std::vector<Digit>& digits, std::size_t rank) {
  if (std::pow(rank + 2, digits.size()) <= many_layouts) return digits;
  std::vector<Digit> larger;
  for (const Digit& digit : digits) {
    if (larger.empty() || larger.back().roles != digit.roles) {
      larger.push_back(digit);
      continue;
    }
    Digit& outer = larger.back();
    outer.size *= digit.size;
    for (std::size_t i = 0; i < digit.value.size(); ++i)
      outer.value[i] = outer.value[i] * digit.size + digit.value[i];
  }
  return larger;
}

AlignedGrid grid_of(const std::vector<Digit>& digits, const std::vector<Piece>& devices,
                    std::size_t sides) {
  AlignedGrid grid{{}, std::vector<placement::Layout>(sides), std::vector<int>(devices.size())};
  for (const Digit& digit : digits) {
    grid.sizes.push_back(digit.size);
    for (std::size_t side = 0; side < sides; ++side)
      grid.layouts[side].push_back(digit.roles[side]);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::size_t place = 0;
    for (const Digit& digit : digits) {
      place =
          place * static_cast<std::size_t>(digit.size) + static_cast<std::size_t>(digit.value[i]);
    }
    grid.devices[place] = devices[i].device;
  }
  return grid;
}

}  // namespace

std::vector<AlignedGrid> align(const std::vector<std::vector<Piece>>& sides,
                               const std::vector<std::int64_t>& shape) {
  const std::vector<Piece>& devices = sides.front();
  if (devices.empty()) return {};
  std::vector<DividedSide> all;
  std::vector<std::vector<int>> orders;  // of each division's factors
  for (std::size_t side = 0; side < sides.size(); ++side) {
    const auto pieces = in_order_of(devices, sides[side]);
    const auto own = pieces ? divisions(side, *pieces, shape) : std::nullopt;
    if (!own) return {};
    for (const DividedSide& division : *own) {
      all.push_back(division);
      orders.push_back(prime_factors(division.count));
    }
  }
  const auto next_order = [](std::vector<int>& order) {
    return std::ranges::next_permutation(order).found;
  };
  std::vector<AlignedGrid> grids;
  do {
    Digits digits;
    for (std::size_t i = 0; i < all.size(); ++i)
      add_digits(digits, all[i], orders[i], sides.size());
    if (!add_replicas(digits, devices.size(), sides.size())) continue;
    for (std::size_t side = 0; side < sides.size(); ++side) {
      if (const auto order = sorted(digits, side > 0))
        grids.push_back(grid_of(searchable(*order, shape.size()), devices, sides.size()));
    }
  } while (grids.empty() && std::ranges::any_of(orders, next_order));
  return grids;
}

}  // namespace stratagem::lowering
