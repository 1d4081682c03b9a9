// Communicators of GPUs: every operation against its closed form, on as many ranks as were launched
// and have a GPU each; otherwise skipped.
#include <array>
#include <iostream>
#include <numeric>
#include <optional>

#include "base/input_error.hpp"
#include "kernels/ranks/nccl_communicator.hpp"
#include "kernels/ranks/own_gpu.hpp"
#include "kernels/ranks/world.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::kernels;

namespace {

World& ranks() {
  static const std::unique_ptr<World> world = kernels::world();
  return *world;
}

/// Why this rank, and all others, have nothing to test; "" if they have.
const std::string& missing() {
  static const std::string why = []() -> std::string {
    try {
      static_cast<void>(gpus_of_ranks(visible_gpus(ranks().all())));
      static_cast<void>(nccl_version());
      return "";
    } catch (const InputError& error) {
      return error.what();
    } catch (const DeviceError& error) {
      return error.what();
    }
  }();
  return why;
}

bool no_gpus() {
  if (!missing().empty()) std::cout << "no CUDA device (" << missing() << "): skipped\n";
  return !missing().empty();
}

const Stream& stream() {
  Communicator& host = ranks().all();
  static const Stream own(
      gpus_of_ranks(visible_gpus(host)).at(static_cast<std::size_t>(host.rank())));
  return own;
}

DeviceCommunicator& all() {
  // Not destroyed: ranks meet for the last time in their World.
  static DeviceCommunicator& group =
      *nccl_communicator(ranks().all(), stream(), {.gone = [] { return ranks().gone(); }})
           .release();
  return group;
}

/// Element i of rank r: whole numbers whose sums over eight ranks are exact in bf16.
template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(T(static_cast<float>(rank + 1 + static_cast<int>(i % 5))));
  return values;
}

template <typename T>
std::vector<T> host_of(DeviceCommunicator& group, const DeviceArray<T>& values) {
  group.wait(stream());
  return on_host(stream(), values);
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) {
    return static_cast<double>(x) == static_cast<double>(y);
  });
}

constexpr std::array<std::size_t, 4> counts = {1, 7, 1025, 300'001};

/// Calls `run.operator()<T>()` for every type that is reduced.
template <typename Run>
void for_types(const Run& run) {
  run.template operator()<float>();
  run.template operator()<double>();
  run.template operator()<Half>();
  run.template operator()<BFloat16>();
}

template <typename T>
void check_all_reduce(DeviceCommunicator& group) {
  const int n = group.size();
  for (const std::size_t count : counts) {
    const auto mine = values_of<T>(group.rank(), count);
    const DeviceArray<T> sum = on_device(stream(), mine), most = on_device(stream(), mine);
    group.all_reduce(stream(), Reduction::sum, sum.span());
    group.all_reduce(stream(), Reduction::maximum, most.span());
    std::vector<T> expected;  // sum over r of r + 1 + i % 5
    for (std::size_t i = 0; i < count; ++i)
      expected.push_back(T(static_cast<float>(n * (n + 1) / 2 + n * static_cast<int>(i % 5))));
    CHECK(same(host_of(group, sum), expected));
    CHECK(same(host_of(group, most), values_of<T>(n - 1, count)));
  }
}

template <typename T>
void check_gather_and_scatter(DeviceCommunicator& group) {
  const auto n = static_cast<std::size_t>(group.size());
  for (const std::size_t count : counts) {
    const auto mine = values_of<T>(group.rank(), count);
    const DeviceArray<T> part = on_device(stream(), mine), whole(n * count), back(count);
    group.all_gather<T>(stream(), part, whole.span());
    group.reduce_scatter<T>(stream(), Reduction::sum, whole, back.span());
    const std::vector<T> gathered = host_of(group, whole);
    for (std::size_t r = 0; r < n; ++r) {
      const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(r * count);
      CHECK(same(std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(count)),
                 values_of<T>(static_cast<int>(r), count)));
    }
    // All hold the same whole: n times a part is left of it.
    std::vector<T> expected;
    for (const T& value : mine)
      expected.push_back(T(static_cast<float>(n) * static_cast<float>(value)));
    CHECK(same(host_of(group, back), expected));
  }
}

template <typename T>
void check_roots(DeviceCommunicator& group) {
  const int n = group.size();
  for (int root = 0; root < n; ++root) {
    const auto mine = values_of<T>(group.rank(), 1025);
    const DeviceArray<T> sent = on_device(stream(), mine), sum = on_device(stream(), mine);
    group.broadcast(stream(), root, sent.span());
    group.reduce(stream(), Reduction::sum, root, sum.span());
    CHECK(same(host_of(group, sent), values_of<T>(root, 1025)));
    const std::vector<T> reduced = host_of(group, sum);
    if (group.rank() != root) {
      CHECK(same(reduced, mine));
    } else {
      CHECK(static_cast<double>(reduced[3]) == n * (n + 1) / 2 + 3 * n);
    }
  }
}

template <typename T>
void check_all_to_all(DeviceCommunicator& group) {
  // Part r of rank s is three times 16 s + r; it becomes part s of rank r.
  const int n = group.size();
  std::vector<T> out, expected;
  for (int r = 0; r < n; ++r) {
    out.insert(out.end(), 3, T(static_cast<float>(16 * group.rank() + r)));
    expected.insert(expected.end(), 3, T(static_cast<float>(16 * r + group.rank())));
  }
  const DeviceArray<T> there = on_device(stream(), out), in(out.size());
  group.all_to_all<T>(stream(), there, in.span());
  CHECK(same(host_of(group, in), expected));
}

TEST_CASE("operations give what their closed forms say, on all ranks and on groups of them") {
  if (no_gpus()) return;
  const int rank = all().rank(), n = all().size();
  std::vector<int> backward(static_cast<std::size_t>(n)), strided;
  std::iota(backward.rbegin(), backward.rend(), 0);
  for (int r = rank % 2; r < n; r += 2) strided.push_back(r);
  std::vector<std::unique_ptr<DeviceCommunicator>> groups;
  for (const auto& list : {backward, strided, {rank}}) groups.push_back(all().group(list));
  CHECK(groups[0]->rank() == n - 1 - rank);
  for (DeviceCommunicator* group : {&all(), groups[0].get(), groups[1].get(), groups[2].get()}) {
    for_types([&]<typename T>() {
      check_all_reduce<T>(*group);
      check_gather_and_scatter<T>(*group);
      check_roots<T>(*group);
      check_all_to_all<T>(*group);
    });
    group->barrier(stream());
    group->wait(stream());
  }
}

TEST_CASE("messages round a ring and back, asked for at once, wait for nobody") {
  if (no_gpus()) return;
  const int n = all().size(), rank = all().rank();
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  for (const std::size_t count : counts) {
    const DeviceArray<float> mine = on_device(stream(), values_of<float>(rank, count));
    const DeviceArray<float> from_before(count), from_next(count);
    const DeviceIn<float> out = mine;
    all().exchange(stream(),
                   {{.to = next, .values = source(out)}, {.to = before, .values = source(out)}},
                   {{.from = before, .values = target(from_before.span())},
                    {.from = next, .values = target(from_next.span())}});
    CHECK(host_of(all(), from_before) == values_of<float>(before, count));
    CHECK(host_of(all(), from_next) == values_of<float>(next, count));
  }
}

TEST_CASE("bytes go as they are, and a rank may send to itself") {
  if (no_gpus()) return;
  const std::vector<std::byte> values = {std::byte{1}, std::byte(all().rank()), std::byte{255}};
  const DeviceArray<std::byte> out = on_device(stream(), values), in(3);
  const DeviceIn<std::byte> sent = out;
  all().exchange(stream(), {{all().rank(), source(sent)}}, {{all().rank(), target(in.span())}});
  CHECK(host_of(all(), in) == values);
}

TEST_CASE("sizes that do not fit each other, and ranks that are none, are broken promises") {
  if (no_gpus()) return;
  const auto n = static_cast<std::size_t>(all().size());
  const DeviceArray<float> part(3), whole(3 * n + 1);
  CHECK_THROWS_AS(all().all_gather<float>(stream(), part, whole.span()), BrokenPromise);
  CHECK_THROWS_AS(all().broadcast(stream(), all().size(), part.span()), BrokenPromise);
  CHECK_THROWS_AS(all().group({}), BrokenPromise);
  all().barrier(stream());  // nobody has begun anything that others would wait for
  all().wait(stream());
}

}  // namespace
