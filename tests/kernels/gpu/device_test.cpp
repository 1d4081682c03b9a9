// What a GPU says of itself, copies there and back, time, and errors.
#include "kernels/device.hpp"

#include "kernels/elementwise.hpp"
#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem;
using namespace stratagem::kernels;

namespace {

TEST_CASE("no GPU has a reason, a GPU has none") {
  CHECK(devices().empty() == !why_no_devices().empty());
}

TEST_CASE("a GPU has a name, multiprocessors and memory") {
  if (no_device()) return;
  const Device& device = stream().device();
  CHECK_FALSE(device.name.empty());
  CHECK(device.at_least(7, 0));
  CHECK(device.multiprocessors > 0);
  CHECK(device.memory > 1_GB);
  CHECK(device.shared_memory >= 48_KiB);
}

TEST_CASE("what is copied there and back is the same, between GPUs' memory and pinned memory too") {
  if (no_device()) return;
  const std::vector<float> numbers = random_operand<float>(100'003, 1);
  const DeviceArray<float> there = on_device(stream(), numbers);
  CHECK(on_host(stream(), there) == numbers);
  const PinnedArray<float> pinned(numbers.size());
  copy_bytes(stream(), there.data(), pinned.data(), numbers.size() * sizeof(float));
  stream().synchronise();
  CHECK(std::vector<float>(pinned.data(), pinned.data() + pinned.size()) == numbers);
}

TEST_CASE("twice the work takes longer, and events tell by how much") {
  if (no_clock()) return;
  const std::int64_t size = 1 << 26;
  const DeviceArray<float> a = room<float>(size), y = room<float>(size);
  const auto time = [&](int times) {
    Event begin, end;
    begin.record(stream());
    for (int i = 0; i < times; ++i) add<float>(stream(), a, a, y);
    end.record(stream());
    end.wait();
    return end.since(begin);
  };
  time(4);
  const Seconds once = time(8), twice = time(16);
  CHECK(twice / once > 1.5);
  CHECK(twice / once < 2.5);
}

TEST_CASE("more memory than there is: out of memory, and work goes on") {
  if (no_device()) return;
  const auto too_much = static_cast<std::size_t>(4 * stream().device().memory.value);
  CHECK_THROWS_AS(DeviceArray<std::int8_t>(too_much), DeviceOutOfMemory);
  const auto a = random_both<float>(5, 1);
  auto y = room<float>(5);
  add<float>(stream(), a, a, y);
  CHECK(on_host(stream(), y)[4] == 2 * static_cast<float>(a.values[4]));
}

TEST_CASE("a GPU that is not there is an error in CUDA's words") {
  if (no_device()) return;
  CHECK_THROWS_WITH(Stream(4096), ContainsSubstring("invalid device ordinal"));
}

}  // namespace
