// Layouts and their conversions: nnScaler's costs, optimality, and that every step has the data it
// needs.
#include "placement/layout.hpp"

#include <map>
#include <set>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/placement/elements.hpp"
#include "tests/placement/roles.hpp"

namespace stratagem::placement::layout_test {

namespace {

using Shape = std::vector<std::int64_t>;
using Sizes = std::vector<int>;

double cost_between(const Layout& from, const Layout& to, const Shape& shape, const Sizes& sizes) {
  return conversion_cost(convert(from, to, shape, sizes), from, shape, sizes);
}

/// Coordinates of every device of a grid.
std::vector<Sizes> devices(const Sizes& sizes) {
  std::vector<Sizes> all{{}};
  for (const int size : sizes) {
    std::vector<Sizes> longer;
    for (const Sizes& prefix : all) {
      for (int i = 0; i < size; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    }
    all = longer;
  }
  return all;
}

/// Is the innermost of the axes that divide a dimension marked only if its place does not say it?
bool is_written_as_agreed(const Layout& layout) {
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    if (!layout[axis].inner) continue;
    const auto same = [&](const AxisRole& role) { return role.dim == layout[axis].dim; };
    if (std::none_of(layout.begin() + static_cast<int>(axis) + 1, layout.end(), same)) return false;
    if (std::ranges::count(layout, layout[axis]) > 1) return false;
  }
  return true;
}

/// All layouts of a matrix whose axes divide it evenly.
std::vector<Layout> layouts(const Shape& shape, const Sizes& sizes) {
  std::vector<Layout> all{{}};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<Layout> longer;
    for (const Layout& prefix : all) {
      for (const AxisRole role : {R, V, rows, columns, inner_rows, inner_columns}) {
        longer.push_back(prefix);
        longer.back().push_back(role);
      }
    }
    all = longer;
  }
  std::erase_if(all, [&](const Layout& layout) {
    return !is_written_as_agreed(layout) || local_elements(layout, shape, sizes) < 0;
  });
  return all;
}

constexpr std::int64_t parts = 12;  // a multiple of every product of axis sizes below

std::map<Sizes, Seen> held(const Layout& layout, const Shape& shape, const Sizes& sizes) {
  std::map<Sizes, Seen> result;
  for (const Sizes& at : devices(sizes))
    result[at] = seen_by(mask_at(layout, shape, sizes, at), parts);
  return result;
}

/// The elements of a device's part, with every part of their value.
Seen elements_at(const Layout& layout, const Sizes& sizes, const Sizes& at) {
  Mask mask = mask_at(layout, {12, 12}, sizes, at);
  mask.value = {};
  return seen_by(mask, parts);
}

/// The devices that differ from `at` only along the given axes, itself among them.
std::vector<Sizes> group_of(const Sizes& at, const std::vector<int>& axes, const Sizes& sizes) {
  std::vector<Sizes> group = devices(sizes);
  std::erase_if(group, [&](const Sizes& member) {
    for (int axis = 0; axis < static_cast<int>(sizes.size()); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (member[i] != at[i] && std::ranges::find(axes, axis) == axes.end()) return true;
    }
    return false;
  });
  return group;
}

/// What devices hold after one step; `layout` is the one it leads to. A collective sees what its
/// group holds. Which devices hold which share of a partial value does not matter, as long as the
/// shares make up the value.
std::map<Sizes, Seen> played(const std::map<Sizes, Seen>& before, const Conversion& step,
                             const Layout& layout, const Sizes& sizes) {
  std::map<Sizes, Seen> now;
  for (const auto& [at, own] : before) {
    const std::vector<Sizes> members = group_of(at, step.axes, sizes);
    Seen group = own;
    for (const Sizes& member : members) {
      if (member == at || !step.communicates()) continue;
      const Seen& theirs = before.at(member);
      const std::size_t sum = group.size() + theirs.size();
      group = either(group, theirs);
      if (step.from == V && group.size() != sum) FAIL("a value is summed twice");
    }
    if (step.to == V && at != members.front()) group.clear();  // only the first keeps the value
    now[at] = common(group, elements_at(layout, sizes, at));
  }
  return now;
}

/// Do devices that differ only along partial axes hold shares that make up their elements, each
/// once?
bool lies_in(const std::map<Sizes, Seen>& now, const Layout& layout, const Sizes& sizes) {
  std::map<Sizes, std::pair<Seen, std::size_t>> sums;  // by the coordinates along the other axes
  for (const auto& [at, seen] : now) {
    Sizes others = at;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (layout[axis] == V) others[axis] = 0;
    }
    sums[others].first = either(sums[others].first, seen);
    sums[others].second += seen.size();
  }
  return std::all_of(sums.begin(), sums.end(), [&](const auto& entry) {
    const auto& [all, count] = entry.second;
    return all == elements_at(layout, sizes, entry.first) && count == all.size();
  });
}

const std::vector<Sizes> grids = {{2, 2}, {2, 3}, {3, 2, 2}};
const Shape twelve = {12, 12};

}  // namespace

TEST_CASE("conversions cost what nnScaler's layout graph says") {
  // An 8 x 8 tensor; elements sent and received within each group, plus one per step. Axes are
  // chosen so that every factor that changes its role is an axis.
  const Shape shape = {8, 8};
  // All-to-all: (n-1)N/n = 3*16/4.
  CHECK(cost_between({rows}, {columns}, shape, {4}) == 13);
  // All-reduce: 2(n-1)N/n = 2*3*64/4.
  CHECK(cost_between({V}, {R}, shape, {4}) == 97);
  // Reduce-scatter: 3*64/4.
  CHECK(cost_between({V}, {rows}, shape, {4}) == 49);
  // All-gather: (n-1)N = 3*16.
  CHECK(cost_between({rows}, {R}, shape, {4}) == 49);
  // Two free chunks.
  CHECK(cost_between({R, R}, {rows, columns}, shape, {2, 2}) == 2);
  // A chunk, then a reduce-scatter of 32 elements by 2.
  CHECK(cost_between({R, V}, {rows, rows}, shape, {2, 2}) == 18);
  // An all-reduce of 32 by 2, an all-gather of 32 by 2.
  CHECK(cost_between({V, rows}, {R, R}, shape, {2, 2}) == 66);
  // All-gathers of 16 and of 32 by 2.
  CHECK(cost_between({rows, columns}, {R, R}, shape, {2, 2}) == 50);
  // On 8 devices: a chunk, then a reduce-scatter of 16 by 2.
  CHECK(cost_between({R, rows, V}, {columns, rows, rows}, shape, {2, 2, 2}) == 10);
  // An all-gather of 16 by 4; keeping the value on one rank is free.
  CHECK(cost_between({columns}, {V}, shape, {4}) == 50);
}

TEST_CASE("conversions over prime factors cost what conversions over whole axes do") {
  // The same ten; an axis of 4 as two axes of 2 that move together.
  const Shape shape = {8, 8};
  const Sizes four = {2, 2};
  CHECK(cost_between({rows, rows}, {columns, columns}, shape, four) == 13);
  CHECK(cost_between({V, V}, {R, R}, shape, four) == 97);
  CHECK(cost_between({V, V}, {rows, rows}, shape, four) == 49);
  CHECK(cost_between({rows, rows}, {R, R}, shape, four) == 49);
  CHECK(cost_between({R, R}, {rows, columns}, shape, four) == 2);
  CHECK(cost_between({R, V}, {rows, rows}, shape, four) == 18);
  CHECK(cost_between({V, rows}, {R, R}, shape, four) == 66);
  CHECK(cost_between({rows, columns}, {R, R}, shape, four) == 50);
  CHECK(cost_between({R, rows, V}, {columns, rows, rows}, shape, {2, 2, 2}) == 10);
  CHECK(cost_between({columns, columns}, {V, V}, shape, four) == 50);
}

TEST_CASE("partial values on prime factors are one all-reduce of all devices") {
  const auto steps = convert({V, V}, {R, R}, {8, 8}, {2, 2});
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].axes == std::vector<int>{0, 1});
  CHECK(steps[0].collective() == cost::CollectiveKind::all_reduce);
}

TEST_CASE("a matrix has 10 layouts on 4 devices and 20 on 8") {
  // A layout counted without the order of its axes: factors of 2 given to R, V, rows and columns.
  const auto count = [](const Sizes& sizes) {
    std::set<Layout> distinct;
    for (Layout layout : layouts({8, 8}, sizes)) {
      for (AxisRole& role : layout) role.inner = false;
      std::ranges::sort(layout);
      distinct.insert(layout);
    }
    return distinct.size();
  };
  CHECK(count({2, 2}) == 10);
  CHECK(count({2, 2, 2}) == 20);
}

TEST_CASE("rows that become columns on the same two devices are one all-to-all") {
  // nnScaler, OSDI 2024, figure 4.
  const auto steps = convert({rows}, {columns}, {8, 8}, {2});
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].collective() == cost::CollectiveKind::all_to_all);
}

TEST_CASE("each change of one axis is its collective") {
  using cost::CollectiveKind;
  const auto kind = [](AxisRole from, AxisRole to) {
    return Conversion{.axes = {0}, .from = from, .to = to}.collective();
  };
  CHECK(kind(V, R) == CollectiveKind::all_reduce);
  CHECK(kind(V, rows) == CollectiveKind::reduce_scatter);
  CHECK(kind(rows, R) == CollectiveKind::all_gather);
  CHECK(kind(rows, columns) == CollectiveKind::all_to_all);
  for (const AxisRole to : {rows, V}) {
    CHECK_FALSE(Conversion{{}, R, to}.communicates());
    CHECK_THROWS_AS(kind(R, to), BrokenPromise);
  }
}

TEST_CASE("equal layouts need no conversion") {
  for (const Layout& layout : layouts(twelve, {2, 3}))
    CHECK(convert(layout, layout, twelve, {2, 3}).empty());
}

TEST_CASE("the devices of a layout hold every element once per replica") {
  for (const Sizes& sizes : grids) {
    for (const Layout& layout : layouts(twelve, sizes)) {
      std::size_t replicas = 1;
      for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        if (layout[axis] == R) replicas *= static_cast<std::size_t>(sizes[axis]);
      }
      std::map<std::int64_t, std::size_t> times;
      for (const auto& [at, seen] : held(layout, twelve, sizes)) {
        for (const std::int64_t element : seen) ++times[element];
        const auto values = static_cast<std::int64_t>(seen.size());
        const std::int64_t share = parts / mask_at(layout, twelve, sizes, at).value.count;
        if (values != local_elements(layout, twelve, sizes) * share) FAIL("elements of one device");
      }
      if (times.size() != 12U * 12U * parts) FAIL("some elements are nowhere");
      for (const auto& [element, count] : times) {
        if (count != replicas) FAIL("an element is held " << count << " times, not " << replicas);
      }
    }
  }
  SUCCEED();
}

TEST_CASE("where two axes divide one dimension the earlier is the outer one") {
  // 12 rows over 2 x 3 devices: device (1, 2) has the last sixth.
  CHECK(mask_at({rows, rows}, {12, 5}, {2, 3}, {1, 2}).ranges ==
        std::vector<Range>{{10, 12}, {0, 5}});
  CHECK(mask_at({rows, rows}, {12, 5}, {2, 3}, {1, 0}).ranges ==
        std::vector<Range>{{6, 8}, {0, 5}});
}

TEST_CASE("an inner axis is the innermost of those that divide its dimension") {
  // 12 rows over 2 x 3 devices: device (1, 2) has the last sixth, but (1, 0) the second.
  CHECK(mask_at({inner_rows, rows}, {12, 5}, {2, 3}, {1, 2}).ranges ==
        std::vector<Range>{{10, 12}, {0, 5}});
  CHECK(mask_at({inner_rows, rows}, {12, 5}, {2, 3}, {1, 0}).ranges ==
        std::vector<Range>{{2, 4}, {0, 5}});
  // Rows of all for columns of some, of which the other axis has parts already: one all-to-all.
  const auto steps = convert({rows, columns}, {inner_columns, columns}, {12, 12}, {2, 3});
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].axes == std::vector<int>{0});
  CHECK(steps[0].collective() == cost::CollectiveKind::all_to_all);
  CHECK(convert({rows, columns}, {columns, columns}, {12, 12}, {2, 3}).size() > 1);
}

TEST_CASE("parts that do not come out even are refused") {
  CHECK(local_elements({rows}, {6, 5}, {4}) == -1);
  CHECK(local_elements({rows, rows}, {6, 5}, {2, 2}) == -1);
  CHECK(local_elements({rows, rows}, {6, 5}, {2, 3}) == 5);
  CHECK_THROWS_AS(mask_at({columns}, {6, 5}, {2}, {0}), BrokenPromise);
  // A conversion never passes through such a layout: 5 columns over 2 devices, so V becomes R.
  for (const Conversion& step : convert({V}, {R}, {6, 5}, {2})) CHECK(step.to != columns);
}

TEST_CASE("conversions, played on what every device holds, end in the layout they promise") {
  for (const Sizes& sizes : grids) {
    const std::vector<Layout> all = layouts(twelve, sizes);
    const std::size_t stride = all.size() > 20 ? 41 : 1;  // on three axes every 41st pair
    for (std::size_t pair = 0; pair < all.size() * all.size(); pair += stride) {
      Layout layout = all[pair / all.size()];
      const Layout& to = all[pair % all.size()];
      auto now = held(layout, twelve, sizes);
      for (const Conversion& step : convert(layout, to, twelve, sizes)) {
        for (const int axis : step.axes) {
          if (layout[static_cast<std::size_t>(axis)] != step.from)
            FAIL("a step from another layout");
        }
        layout = after(layout, step);
        now = played(now, step, layout, sizes);
      }
      if (layout != to) FAIL("a conversion ends elsewhere");
      if (!lies_in(now, layout, sizes)) FAIL("pair " << pair << ": data missing or summed twice");
    }
  }
  SUCCEED();
}

TEST_CASE("no other sequence of single steps is cheaper") {
  // Bellman-Ford over all layouts; an edge where axes of one role change to another one and the
  // group holds what is needed.
  for (const Sizes& sizes : std::vector<Sizes>{{2, 2}, {2, 3}}) {
    const std::vector<Layout> all = layouts(twelve, sizes);
    std::map<std::pair<std::size_t, std::size_t>, double> edges;
    for (std::size_t a = 0; a < all.size(); ++a) {
      for (std::size_t b = 0; b < all.size(); ++b) {
        std::vector<int> changed;
        double n = 1;
        for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
          if (all[a][axis] == all[b][axis]) continue;
          changed.push_back(static_cast<int>(axis));
          n *= sizes[axis];
        }
        if (changed.empty()) continue;
        const AxisRole from = all[a][static_cast<std::size_t>(changed[0])];
        const AxisRole to = all[b][static_cast<std::size_t>(changed[0])];
        if (to == V && from != R) continue;  // parts do not become partial sums in one step
        bool possible = std::ranges::all_of(changed, [&](int axis) {
          const auto i = static_cast<std::size_t>(axis);
          return all[a][i] == from && all[b][i] == to;
        });
        for (const Sizes& at : devices(sizes)) {
          Seen group;
          for (const Sizes& member : group_of(at, changed, sizes))
            group = either(group, elements_at(all[a], sizes, from == R ? at : member));
          possible = possible && contains(group, elements_at(all[b], sizes, at));
        }
        if (!possible) continue;
        const auto elements = static_cast<double>(local_elements(all[a], twelve, sizes));
        double volume = 0;
        if (from == V) volume = (to == R ? 2 : 1) * (n - 1) * elements / n;
        if (from.dim >= 0) volume = to == R ? (n - 1) * elements : (n - 1) * elements / n;
        edges[{a, b}] = volume + 1;
      }
    }
    for (std::size_t source = 0; source < all.size(); ++source) {
      std::vector<double> cost(all.size(), 1e9);
      cost[source] = 0;
      for (std::size_t round = 0; round < all.size(); ++round) {
        for (const auto& [edge, length] : edges) {
          cost[edge.second] = std::min(cost[edge.second], cost[edge.first] + length);
        }
      }
      for (std::size_t target = 0; target < all.size(); ++target) {
        if (!close(cost_between(all[source], all[target], twelve, sizes), cost[target], 1e-12)) {
          FAIL("layout " << source << " to " << target << " costs "
                         << cost_between(all[source], all[target], twelve, sizes) << ", not "
                         << cost[target]);
        }
      }
    }
  }
  SUCCEED();
}

}  // namespace stratagem::placement::layout_test
