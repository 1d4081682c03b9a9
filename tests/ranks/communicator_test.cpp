// Communicators: every operation against its closed form, on as many ranks as were launched.
#include "kernels/ranks/communicator.hpp"

#include <array>
#include <numeric>
#include <set>

#include "kernels/ranks/world.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::kernels;

namespace {

/// All ranks run all tests in the same order, so one world serves them all.
Communicator& all() {
  static const std::unique_ptr<World> ranks = world();
  return ranks->all();
}

/// Element i of rank r: whole numbers, so sums are exact in any order.
template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(100 * (rank + 1) + static_cast<int>(i % 97));
  return values;
}

/// From one element over one beyond what MPI sends eagerly to one that it sends in pieces.
constexpr std::array<std::size_t, 4> counts = {1, 7, 1025, 300'001};

template <typename T>
void check_all_reduce(Communicator& group) {
  const int n = group.size();
  for (const std::size_t count : counts) {
    // Sum over r of 100 (r + 1) + i % 97 is 50 n (n + 1) + n (i % 97); the last rank has the most.
    std::vector<T> sum = values_of<T>(group.rank(), count), most = sum;
    group.all_reduce(Reduction::sum, std::span(sum));
    group.all_reduce(Reduction::maximum, std::span(most));
    std::vector<T> expected(count);
    for (std::size_t i = 0; i < count; ++i)
      expected[i] = static_cast<T>(50 * n * (n + 1) + n * static_cast<int>(i % 97));
    CHECK(sum == expected);
    CHECK(most == values_of<T>(n - 1, count));
  }
}

template <typename T>
void check_gather_and_scatter(Communicator& group) {
  const auto n = static_cast<std::size_t>(group.size());
  for (const std::size_t count : counts) {
    const std::vector<T> mine = values_of<T>(group.rank(), count);
    std::vector<T> whole(n * count);
    group.all_gather(In<T>(mine), std::span(whole));
    for (std::size_t r = 0; r < n; ++r) {
      const std::vector<T> part(whole.begin() + static_cast<std::ptrdiff_t>(r * count),
                                whole.begin() + static_cast<std::ptrdiff_t>((r + 1) * count));
      CHECK(part == values_of<T>(static_cast<int>(r), count));
    }
    // All hold the same whole now: n times a part is left of it.
    std::vector<T> part(count), expected = mine;
    group.reduce_scatter(Reduction::sum, In<T>(whole), std::span(part));
    for (T& value : expected) value *= static_cast<T>(n);
    CHECK(part == expected);
  }
}

void check_roots(Communicator& group) {
  for (int root = 0; root < group.size(); ++root) {
    std::vector<float> values = values_of<float>(group.rank(), 1025);
    group.broadcast(root, std::span(values));
    CHECK(values == values_of<float>(root, 1025));

    std::vector<double> sum = values_of<double>(group.rank(), 1025);
    group.reduce(Reduction::sum, root, std::span(sum));
    const int n = group.size();
    if (group.rank() == root) {
      CHECK(sum[3] == 50 * n * (n + 1) + n * 3);
    } else {
      CHECK(sum == values_of<double>(group.rank(), 1025));
    }
  }
}

void check_all_to_all(Communicator& group) {
  // Part r of rank s is 1000 s + r; it becomes part s of rank r.
  const int n = group.size();
  std::vector<double> out, in(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) out.push_back(1000 * group.rank() + r);
  group.all_to_all(In<double>(out), std::span(in));
  for (int s = 0; s < n; ++s) CHECK(in[static_cast<std::size_t>(s)] == 1000 * s + group.rank());
}

/// Every rank of a group, one after the other, in the orders that groups may have.
std::vector<std::vector<int>> lists_with(int rank, int ranks) {
  std::vector<int> forward(static_cast<std::size_t>(ranks));
  std::iota(forward.begin(), forward.end(), 0);
  const std::vector<int> backward(forward.rbegin(), forward.rend());
  std::vector<int> strided;
  for (int r = rank % 2; r < ranks; r += 2) strided.push_back(r);
  return {forward, backward, strided, {rank}};
}

TEST_CASE("operations give what their closed forms say, on all ranks and on groups of them") {
  const int rank = all().rank();
  for (const std::vector<int>& list : lists_with(rank, all().size())) {
    const std::unique_ptr<Communicator> group = all().group(list);
    REQUIRE(group->size() == static_cast<int>(list.size()));
    CHECK(list[static_cast<std::size_t>(group->rank())] == rank);
    check_all_reduce<float>(*group);
    check_all_reduce<double>(*group);
    check_gather_and_scatter<float>(*group);
    check_gather_and_scatter<double>(*group);
    check_roots(*group);
    check_all_to_all(*group);
    group->barrier();
  }
}

TEST_CASE("groups of groups count their ranks in the group that made them") {
  // Backwards twice is forwards.
  std::vector<int> backward(static_cast<std::size_t>(all().size()));
  std::iota(backward.rbegin(), backward.rend(), 0);
  const auto once = all().group(backward);
  const auto twice = once->group(backward);
  CHECK(once->rank() == all().size() - 1 - all().rank());
  CHECK(twice->rank() == all().rank());
  check_all_reduce<float>(*twice);
}

TEST_CASE("messages round a ring and back, started at once, wait for nobody") {
  const int n = all().size(), rank = all().rank();
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  for (const std::size_t count : counts) {
    const std::vector<float> mine = values_of<float>(rank, count);
    std::vector<float> from_before(count), from_next(count);
    const std::span<const float> out(mine);
    // Two messages of different contents each way; where both neighbours are one rank the order
    // tells them apart: the first to be sent is the first to be received.
    all().exchange({{.to = next, .values = source(out)}, {.to = before, .values = source(out)}},
                   {{.from = before, .values = target(std::span(from_before))},
                    {.from = next, .values = target(std::span(from_next))}});
    CHECK(from_before == values_of<float>(before, count));
    CHECK(from_next == values_of<float>(next, count));
  }
}

TEST_CASE("messages arrive in the order in which they were started, bytes as they are") {
  const int n = all().size(), rank = all().rank();
  const std::array<std::byte, 3> out = {std::byte{1}, std::byte{2}, std::byte(rank)};
  std::array<std::byte, 3> in{};
  const auto sent = all().start({{(rank + 1) % n, source(std::span(out).first(1))},
                                 {(rank + 1) % n, source(std::span(out).subspan(1))}},
                                {});
  const int from = (rank + n - 1) % n;
  all().receive(from, std::span(in).first(1));
  all().receive(from, std::span(in).subspan(1));
  sent->wait();
  sent->wait();
  CHECK(in == std::array{std::byte{1}, std::byte{2}, std::byte(from)});
}

TEST_CASE("sizes that do not fit each other, and groups that are none, are broken promises") {
  std::vector<float> part(3), whole(3 * static_cast<std::size_t>(all().size()) + 1);
  CHECK_THROWS_AS(all().all_gather(In<float>(part), std::span(whole)), BrokenPromise);
  CHECK_THROWS_AS(all().reduce_scatter(Reduction::sum, In<float>(whole), std::span(part)),
                  BrokenPromise);
  CHECK_THROWS_AS(all().group({}), BrokenPromise);
  CHECK_THROWS_AS(all().group({all().rank(), all().rank()}), BrokenPromise);
  CHECK_THROWS_AS(all().group({all().rank(), all().size()}), BrokenPromise);
  all().barrier();  // nobody has begun anything that others would wait for
}

TEST_CASE("a lone rank that waits for a message which it has not sent is told so") {
  const auto alone = lone();
  std::array<double, 2> in{};
  const auto pending = alone->start({}, {{.from = 0, .values = target(std::span<double>(in))}});
  CHECK_THROWS_AS(pending->wait(), BrokenPromise);
}

}  // namespace
