// Redistributions: nnScaler's examples, the ways across groups and the general cover by hand, and
// random ones played on what every device holds.

#include "lowering/redistribute/redistribute.hpp"

#include <numeric>

#include "base/input_error.hpp"
#include "placement/layout.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/redistribute/played.hpp"
#include "tests/placement/roles.hpp"
#include "tests/random_cases.hpp"

namespace stratagem::lowering::redistribute_test {

using placement::columns;
using placement::Layout;
using placement::Mask;
using placement::R;
using placement::Range;
using placement::rows;
using placement::V;
using placement::whole;

namespace {

using Shape = std::vector<std::int64_t>;
using Sizes = std::vector<int>;
using Kinds = std::vector<StepKind>;

/// Devices first, first + 1, ... as a grid, the last axis fastest.
std::vector<Piece> pieces(const Layout& layout, const Shape& shape, const Sizes& sizes,
                          int first = 0) {
  const int count = std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
  std::vector<Piece> result;
  for (int i = 0; i < count; ++i) {
    Sizes at(sizes.size());
    int rest = i;
    for (std::size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      at[axis] = rest % sizes[axis];
    result.push_back({first + i, mask_at(layout, shape, sizes, at)});
  }
  return result;
}

Kinds kinds(const Redistribution& redistribution) {
  Kinds result;
  for (const Step& step : redistribution.steps) result.push_back(step.kind);
  return result;
}

/// nnScaler's measure: the volume of one group of every step, and 1 a step.
double cost(const Redistribution& redistribution) {
  double sum = 0;
  for (const Step& step : redistribution.steps)
    sum += 1 + moved(step) / static_cast<double>(step.groups.size());
  return sum;
}

void play(const Redistribution& redistribution, const std::vector<Piece>& producers,
          const std::vector<Piece>& consumers) {
  PlayedSteps played(producers);
  played.run(redistribution);
  demand_delivery(played, consumers);
}

/// Computed and played.
Redistribution between(const Shape& shape, const std::vector<Piece>& producers,
                       const std::vector<Piece>& consumers) {
  Redistribution result = redistribute(shape, producers, consumers);
  play(result, producers, consumers);
  return result;
}

Mask box(Range first, Range second, placement::ValuePart value = {}) {
  return {{first, second}, value};
}

}  // namespace

TEST_CASE("rows that become columns on the same two devices are one all-to-all of both") {
  // nnScaler, OSDI 2024, figure 4. Each sends half of its 32 elements.
  const Shape shape = {8, 8};
  const Redistribution result =
      between(shape, pieces({rows}, shape, {2}), pieces({columns}, shape, {2}));
  REQUIRE(kinds(result) == Kinds{StepKind::all_to_all});
  REQUIRE(result.steps[0].groups.size() == 1);
  const std::vector<Share>& group = result.steps[0].groups[0];
  REQUIRE(group.size() == 2);
  CHECK(group[0] == Share{0, {box({0, 4}, {0, 8})}, box({0, 8}, {0, 4})});
  CHECK(group[1] == Share{1, {box({4, 8}, {0, 8})}, box({0, 8}, {4, 8})});
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::all_to_all, 16}});
}

TEST_CASE("redistributions within a group cost what nnScaler's layout graph says") {
  // The ten of layout_test.cpp, now recognised from the masks.
  const Shape shape = {8, 8};
  const auto cost_between = [&](const Layout& from, const Layout& to, const Sizes& sizes) {
    return cost(between(shape, pieces(from, shape, sizes), pieces(to, shape, sizes)));
  };
  CHECK(cost_between({rows}, {columns}, {4}) == 13);
  CHECK(cost_between({V}, {R}, {4}) == 97);
  CHECK(cost_between({V}, {rows}, {4}) == 49);
  CHECK(cost_between({rows}, {R}, {4}) == 49);
  CHECK(cost_between({R, R}, {rows, columns}, {2, 2}) == 2);
  CHECK(cost_between({R, V}, {rows, rows}, {2, 2}) == 18);
  CHECK(cost_between({V, rows}, {R, R}, {2, 2}) == 66);
  CHECK(cost_between({rows, columns}, {R, R}, {2, 2}) == 50);
  CHECK(cost_between({R, rows, V}, {columns, rows, rows}, {2, 2, 2}) == 10);
  CHECK(cost_between({columns}, {V}, {4}) == 50);
}

TEST_CASE("nothing happens where every consumer has its mask already") {
  const Shape shape = {8, 8};
  const std::vector<Piece> all = pieces({rows, V}, shape, {2, 2});
  CHECK(redistribute(shape, all, all).steps.empty());
  CHECK(redistribute(shape, all, {all[2], all[2]}).steps.empty());
  CHECK(redistribute(shape, all, {}).steps.empty());
}

TEST_CASE("between two groups the slow wires carry as little as possible") {
  const Shape shape = {8, 8};
  const auto across = [&](const Layout& from, const Sizes& sizes, const Layout& to,
                          const Sizes& other_sizes) {
    return between(shape, pieces(from, shape, sizes), pieces(to, shape, other_sizes, 100));
  };
  // Equal rows: every device has one partner; 2 sends of 32.
  const Redistribution equal = across({rows}, {2}, {rows}, {2});
  CHECK(kinds(equal) == Kinds{StepKind::send});
  CHECK(volume(equal) == std::map<StepKind, double>{{StepKind::send, 64}});
  // One to four: parts of 16 cross, 24*64 + 1, then an all-gather of 48; whole copies would be
  // 24*256.
  const Redistribution copies = across({}, {}, {R}, {4});
  CHECK(kinds(copies) == Kinds{StepKind::select, StepKind::send, StepKind::all_gather});
  CHECK(volume(copies) ==
        std::map<StepKind, double>{{StepKind::send, 64}, {StepKind::all_gather, 48}});
  // Rows to columns: an all-to-all on either side, and equal parts cross.
  const Redistribution turned = across({rows}, {2}, {columns}, {2});
  CHECK(kinds(turned) == Kinds{StepKind::all_to_all, StepKind::send});
  // Partial values: halves are summed (32 each) before they cross, 24*32, and are gathered there.
  const Redistribution summed = across({V}, {2}, {R}, {2});
  CHECK(kinds(summed) == Kinds{StepKind::reduce_scatter, StepKind::send, StepKind::all_gather});
  CHECK(volume(summed).at(StepKind::send) == 64);
  // Rows on two devices gathered by one: 2 sends of 32, put together there.
  const Redistribution gathered = across({rows}, {2}, {}, {});
  CHECK(kinds(gathered) == Kinds{StepKind::send, StepKind::concatenate});
}

TEST_CASE("copies that cannot be divided among the consumers are broadcast") {
  // 3 x 5 elements on 1 device, wanted whole by 2: neither dimension is even.
  const Shape shape = {3, 5};
  const Redistribution result = between(shape, pieces({}, shape, {}), pieces({R}, shape, {2}, 100));
  REQUIRE(kinds(result) == Kinds{StepKind::broadcast});
  CHECK(result.steps[0].groups[0].size() == 3);
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::broadcast, 30}});
}

TEST_CASE("unequal parts are covered by what the own device has and by sends") {
  // Rows 0-4 | 5-7 become rows 0-1 | 2-7: device 1 gets rows 2-4 from device 0.
  const Shape shape = {8, 4};
  const Redistribution result = between(shape, {{0, box({0, 5}, {0, 4})}, {1, box({5, 8}, {0, 4})}},
                                        {{0, box({0, 2}, {0, 4})}, {1, box({2, 8}, {0, 4})}});
  REQUIRE(kinds(result) == Kinds{StepKind::select, StepKind::send, StepKind::concatenate});
  CHECK(result.steps[1].groups ==
        std::vector<std::vector<Share>>{
            {{0, {box({2, 5}, {0, 4})}, box({2, 5}, {0, 4})}, {1, {}, box({2, 5}, {0, 4})}}});
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::send, 12}});
}

TEST_CASE("one part that several devices need is one broadcast") {
  const Shape shape = {8, 4};
  const Redistribution result = between(shape, {{7, whole(shape)}},
                                        {{7, whole(shape)}, {3, whole(shape)}, {5, whole(shape)}});
  REQUIRE(kinds(result) == Kinds{StepKind::broadcast});
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::broadcast, 64}});
}

TEST_CASE("consumers ask the producer that has sent least") {
  // Two whole copies; 4 consumers of unequal rows: the sources alternate while that keeps them
  // even.
  const Shape shape = {10, 1};
  const Redistribution result = between(shape, {{0, whole(shape)}, {1, whole(shape)}},
                                        {{2, box({0, 4}, {0, 1})},
                                         {3, box({4, 6}, {0, 1})},
                                         {4, box({6, 7}, {0, 1})},
                                         {5, box({7, 10}, {0, 1})}});
  std::map<int, std::int64_t> sent;
  for (const std::vector<Share>& group : result.steps.at(1).groups)
    sent[group[0].device] += size_of(group[0].holds);
  // 4 | 2, 4 | 2 + 1, 4 | 2 + 1 + 3.
  CHECK(sent == std::map<int, std::int64_t>{{0, 4}, {1, 6}});
}

TEST_CASE("partial values of unequal counts are summed") {
  // nnScaler's gradients of a tensor with 4 consumers: halves, then halves of what is left.
  const Shape shape = {2, 2};
  const auto part = [](std::int64_t i, std::int64_t n) { return box({0, 2}, {0, 2}, {i, n}); };
  const std::vector<Piece> producers = {
      {0, part(0, 2)}, {1, part(2, 4)}, {2, part(6, 8)}, {3, part(7, 8)}};
  const Redistribution result = between(shape, producers, {{0, whole(shape)}});
  CHECK(kinds(result) == Kinds{StepKind::send, StepKind::sum});
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::send, 12}});
}

TEST_CASE("partial values that are divided differently are cut before they are summed") {
  const Shape shape = {4, 4};
  const std::vector<Piece> producers = {{0, box({0, 1}, {0, 4}, {0, 2})},
                                        {1, box({1, 4}, {0, 4}, {0, 2})},
                                        {2, box({0, 4}, {0, 3}, {1, 2})},
                                        {3, box({0, 4}, {3, 4}, {1, 2})}};
  const Redistribution result = between(shape, producers, {{4, whole(shape)}});
  CHECK(kinds(result) ==
        Kinds{StepKind::send, StepKind::select, StepKind::sum, StepKind::concatenate});
}

TEST_CASE("a device sums its own partial values before it sends anything") {
  // Two quarters of the value on each device: local sums, then an all-reduce of 2 by 2.
  const Shape shape = {4, 4};
  std::vector<Piece> producers = pieces({V}, shape, {4});
  for (Piece& piece : producers) piece.device /= 2;
  const Redistribution result = between(shape, producers, pieces({R}, shape, {2}));
  CHECK(kinds(result) == Kinds{StepKind::sum, StepKind::all_reduce});
  CHECK(volume(result) == std::map<StepKind, double>{{StepKind::all_reduce, 16}});
}

TEST_CASE("what nobody produces is refused") {
  const Shape shape = {8, 4};
  const auto refused = [&](const std::vector<Piece>& producers, const std::vector<Piece>& consumers,
                           const std::string& expected, const std::string& found) {
    try {
      redistribute(shape, producers, consumers);
      FAIL("not refused");
    } catch (const InputError& error) {
      CHECK_THAT(error.expected, ContainsSubstring(expected));
      CHECK_THAT(error.found, ContainsSubstring(found));
    }
  };
  const Mask top = box({0, 4}, {0, 4});
  refused({{0, top}, {2, top}}, {{5, whole(shape)}},
          "device 5 reads of a tensor, [0, 8) x [0, 4), to be produced by devices 0, 2",
          "no producer for [4, 8) x [0, 4)");
  // A half of the value is missing.
  refused({{0, box({0, 8}, {0, 4}, {0, 2})}}, {{0, whole(shape)}}, "device 0",
          "from 1/2 to 2/2 of the value");
  // Thirds cannot be made into halves.
  refused(pieces({V}, shape, {3}), {{0, split_value(whole(shape), 0, 2)}}, "device 0",
          "of the value");
  // A part of a value of which somebody else already produces a finer part.
  refused({{0, box({0, 8}, {0, 4}, {0, 2})}, {1, box({0, 8}, {0, 4}, {2, 4})}},
          {{0, box({0, 8}, {0, 4}, {0, 4})}}, "device 0", "from 0/4 to 1/4 of the value");
  refused({}, {{1, top}}, "by no device", "[0, 4) x [0, 4)");
}

TEST_CASE("a mask beyond the tensor is a broken promise") {
  CHECK_THROWS_AS(redistribute({4, 4}, {{0, box({0, 4}, {0, 5})}}, {}), BrokenPromise);
  CHECK_THROWS_AS(redistribute({4, 4}, {{0, box({2, 2}, {0, 4})}}, {}), BrokenPromise);
}

namespace {

/// Renames devices, so that their numbers say nothing.
std::vector<Piece> renamed(std::vector<Piece> all, const std::vector<int>& names) {
  for (Piece& piece : all) piece.device = names[static_cast<std::size_t>(piece.device)];
  return all;
}
Redistribution renamed(Redistribution redistribution, const std::vector<int>& names) {
  for (Step& step : redistribution.steps) {
    for (std::vector<Share>& group : step.groups) {
      for (Share& share : group) share.device = names[static_cast<std::size_t>(share.device)];
    }
  }
  return redistribution;
}
constexpr int most_devices = 30;

/// All that must hold for any redistribution.
void check_all(const Shape& shape, const std::vector<Piece>& producers,
               const std::vector<Piece>& consumers) {
  const Redistribution result = redistribute(shape, producers, consumers);
  play(result, producers, consumers);
  std::map<StepKind, double> expected;
  for (const Step& step : result.steps) {
    if (communicates(step.kind)) expected[step.kind] += moved(step);
  }
  const std::map<StepKind, double> volumes = volume(result);
  RC_ASSERT(volumes.size() == expected.size());
  for (const auto& [kind, elements] : expected) RC_ASSERT(close(volumes.at(kind), elements, 1e-12));
  const std::vector<int> names = shuffled(most_devices);
  RC_ASSERT(redistribute(shape, renamed(producers, names), renamed(consumers, names)) ==
            renamed(result, names));
}

const Shape twelve = {12, 12};

Layout random_layout(const Sizes& sizes) {
  Layout layout;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    layout.push_back(one_of<placement::AxisRole>({R, V, rows, columns}));
    if (local_elements(layout, twelve, sizes) < 0) layout.back() = R;
  }
  return layout;
}

const std::vector<Sizes> grids = {{},     {2},    {3},    {4},       {6},       {2, 2},   {2, 3},
                                  {3, 2}, {2, 4}, {4, 3}, {2, 2, 2}, {2, 2, 3}, {3, 2, 2}};

/// A random partition of a box: cut again and again at random places.
std::vector<Mask> random_boxes(const Mask& all) {
  std::vector<Mask> boxes{all};
  for (int cuts = pick(0, 4); cuts > 0; --cuts) {
    Mask& cut = boxes[pick<std::size_t>(0, boxes.size() - 1)];
    Range& range = cut.ranges[pick<std::size_t>(0, all.ranges.size() - 1)];
    if (range.end - range.begin < 2) continue;
    const std::int64_t at = pick(range.begin + 1, range.end - 1);
    Range rest{at, range.end};
    range.end = at;
    Mask other = cut;
    other.ranges[static_cast<std::size_t>(&range - cut.ranges.data())] = rest;
    boxes.push_back(std::move(other));
  }
  return boxes;
}

/// Which numbers of partial values a side may have in different boxes, and whether a part may
/// consist of finer parts.
struct Values {
  std::vector<std::int64_t> counts = {1};
  bool nested = false;
};

/// A random partition into boxes and their partial values on random devices, some with replicas.
std::vector<Piece> random_pieces(const Shape& shape, const Values& values, int devices,
                                 bool replicas = true) {
  std::vector<Piece> all;
  for (const Mask& part : random_boxes(whole(shape))) {
    const std::int64_t count = one_of(values.counts);
    for (std::int64_t i = 0; i < count; ++i) {
      const Mask value = split_value(part, i, count);
      const bool finer = values.nested && pick(0, 2) == 0;
      for (int copies = replicas ? pick(1, 2) : 1; copies > 0; --copies) {
        const auto device = [&] { return pick(0, devices - 1); };
        if (!finer) all.push_back({device(), value});
        for (std::int64_t k = 0; finer && k < 2; ++k)
          all.push_back({device(), split_value(value, k, 2)});
      }
    }
  }
  return all;
}

Shape random_shape() {
  Shape shape;
  for (int rank = pick(1, 3); rank > 0; --rank) shape.push_back(pick<std::int64_t>(1, 6));
  return shape;
}

}  // namespace

TEST_CASE("any two uniform layouts of one group are connected, as cheaply as on the given axes") {
  always(
      [] {
        const Sizes sizes = one_of(grids);
        const Layout from = random_layout(sizes);
        const Layout to = random_layout(sizes);
        const std::vector<Piece> producers = pieces(from, twelve, sizes);
        const std::vector<Piece> consumers = pieces(to, twelve, sizes);
        check_all(twelve, producers, consumers);
        const double on_axes =
            conversion_cost(convert(from, to, twelve, sizes), from, twelve, sizes);
        RC_ASSERT(cost(redistribute(twelve, producers, consumers)) <= on_axes + 1e-9);
      },
      150);
}

TEST_CASE("any two uniform layouts are connected, whatever the order of the devices") {
  always(
      [] {
        const Sizes sizes = one_of(grids);
        const std::vector<Piece> producers = pieces(random_layout(sizes), twelve, sizes);
        const auto count = static_cast<int>(producers.size());
        // Full values: random devices may not share out partial ones as any producers do.
        Layout to = random_layout(sizes);
        std::ranges::replace(to, V, R);
        check_all(twelve, producers, renamed(pieces(to, twelve, sizes), shuffled(count)));
      },
      100);
}

TEST_CASE("any two uniform groups without common devices are connected") {
  always(
      [] {
        const Sizes from_sizes = one_of(grids);
        const Sizes to_sizes = one_of(grids);
        const std::vector<Piece> producers = pieces(random_layout(from_sizes), twelve, from_sizes);
        const std::vector<Piece> consumers = pieces(random_layout(to_sizes), twelve, to_sizes, 15);
        check_all(twelve, producers, consumers);
      },
      100);
}

TEST_CASE("any parts of any partial values become any parts of the full value") {
  always(
      [] {
        const Shape shape = random_shape();
        const auto producers = random_pieces(shape, {{1, 2, 3, 4}, true}, 6);
        check_all(shape, producers, random_pieces(shape, {}, pick(1, 8)));
      },
      250);
}

TEST_CASE("any parts of the full value become any parts of any partial values") {
  always(
      [] {
        const Shape shape = random_shape();
        const auto producers = random_pieces(shape, {}, 6);
        check_all(shape, producers, random_pieces(shape, {{1, 2, 3, 4}, false}, 8));
      },
      150);
}

TEST_CASE("equally many partial values everywhere become fewer or more") {
  always(
      [] {
        const Shape shape = random_shape();
        const auto producers = random_pieces(shape, {{2}, false}, 6);
        check_all(shape, producers, random_pieces(shape, {{1, 2, 4, 6}, false}, 8));
      },
      150);
}

TEST_CASE("without any one of its parts a tensor is refused") {
  always(
      [] {
        const Shape shape = random_shape();
        auto producers = random_pieces(shape, {{1, 2, 3}, true}, 6, false);
        producers.erase(producers.begin() + pick<std::ptrdiff_t>(0, std::ssize(producers) - 1));
        RC_ASSERT_THROWS_AS(redistribute(shape, producers, random_pieces(shape, {}, 6)),
                            InputError);
      },
      150);
}

}  // namespace stratagem::lowering::redistribute_test
