// The emulated GPU finds what is wrong: kernels that are right, each with one fault if asked for.
#include <cuda_runtime.h>

#include <array>
#include <functional>
#include <memory>
#include <set>

#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/inside/ptx.cuh"
#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem;
using namespace stratagem::kernels;

namespace {

/// 256 numbers the other way round. Fault: no barrier between writing and reading.
__global__ void reverse(bool fault, float* x) {
  __shared__ float turned[256];
  turned[255 - threadIdx.x] = x[threadIdx.x];
  if (!fault) __syncthreads();
  x[threadIdx.x] = turned[threadIdx.x];
}

/// Fault: what all have written is read by others, but nobody waits until all have read it.
__global__ void sum_twice(bool fault, float* x) {
  __shared__ float of_all[256];
  float sum = x[threadIdx.x];
  for (int again = 0; again < 2; ++again) {
    of_all[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += of_all[i];
    if (!fault) __syncthreads();
  }
  x[threadIdx.x] = sum;
}

/// Each warp's numbers shifted by a lane. Fault: no __syncwarp(); shuffles do not order memory.
__global__ void shift(bool fault, float* x) {
  __shared__ float shifted[256];
  shifted[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32] = x[threadIdx.x];
  __shfl_xor_sync(0xFFFFFFFFU, 0.0F, 1);
  if (!fault) __syncwarp();
  x[threadIdx.x] = shifted[threadIdx.x];
}

/// Fault: __syncwarp() where the whole block is to wait.
__global__ void wait_for_warp(bool fault, float* x) {
  __shared__ float turned[256];
  turned[255 - threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  if (!fault) __syncthreads();
  x[threadIdx.x] = turned[threadIdx.x];
}

/// The blocks' numbers. Fault: all blocks in one place.
__global__ void number_blocks(bool fault, float* x) {
  if (threadIdx.x == 0) x[fault ? 0 : blockIdx.x] = static_cast<float>(blockIdx.x);
}

/// Fault: a block reads what another one writes.
__global__ void read_next_block(bool fault, float* x) {
  if (threadIdx.x != 0) return;
  const float next = fault ? x[(blockIdx.x + 1) % gridDim.x] : 0.0F;
  x[blockIdx.x] = next + 1;
}

/// Faults: one element too far is read; is written.
__global__ void read_too_far(bool fault, float* x) {
  if (x[threadIdx.x + (fault && threadIdx.x == 255 ? 1 : 0)] > 0) x[threadIdx.x] = 2;
}
__global__ void write_too_far(bool fault, float* x) { x[threadIdx.x + (fault ? 1 : 0)] = 1; }
__global__ void write_before(bool fault, float* x) { *(x + threadIdx.x - (fault ? 1 : 0)) = 1; }

/// Fault: a pointer to the host's memory.
__global__ void read_host(bool fault, float* x, const float* host) {
  x[threadIdx.x] = *(fault ? host : x + threadIdx.x);
}

/// Fault: one element of a shared array too far.
__global__ void index_shared(bool fault, float* x) {
  __shared__ float numbers[256];
  numbers[threadIdx.x + (fault ? 1 : 0)] = 1;
  __syncthreads();
  x[threadIdx.x] = numbers[threadIdx.x];
}

/// Fault: more shared memory than the launch asked for.
__global__ void index_dynamic(bool fault, float* x) {
  float* const numbers = dynamic_shared<float>();
  numbers[threadIdx.x + (fault ? 1 : 0)] = x[threadIdx.x];
}

/// Fault: shared memory that nobody has written, in this block.
__global__ void read_unwritten(bool fault, float* x) {
  __shared__ float numbers[256];
  if (!fault || blockIdx.x == 0) numbers[threadIdx.x] = 1;
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = numbers[255 - threadIdx.x];
}

/// Faults: half of the threads leave before a barrier; halves wait at different ones.
__global__ void leave_early(bool fault, float* x) {
  if (fault && threadIdx.x >= 128) return;
  __syncthreads();
  x[threadIdx.x] = 1;
}
__global__ void part_ways(bool fault, float* x) {
  if (!fault || threadIdx.x < 128)
    __syncthreads();
  else
    __syncthreads();
  x[threadIdx.x] = 1;
}

/// Fault: odd lanes stay away from a shuffle that names them.
__global__ void shuffle_some(bool fault, float* x) {
  if (fault && threadIdx.x % 2 == 1) return;
  x[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFU, 1.0F, 1);
}

/// Fault: four floats from between multiples of 16 bytes.
__global__ void read_askew(bool fault, float* x) {
  if (threadIdx.x != 0) return;
  const auto packet = *reinterpret_cast<const Packet<float, 4>*>(x + (fault ? 1 : 0));
  for (float number : packet.elements) x[8] = number;
}

/// Fault: copies that do not wait are used before they have been waited for.
__global__ void use_too_early(bool fault, float* x) {
  float* const arrived = dynamic_shared<float>();
  if (threadIdx.x < 64) copy_16(arrived + 4 * threadIdx.x, x + 4 * threadIdx.x, true);
  end_copies();
  if (!fault) wait_for_copies<0>();
  __syncthreads();
  x[255 - threadIdx.x] = arrived[threadIdx.x];
  wait_for_copies<0>();
}

struct Fault {
  std::string name;
  std::function<void(bool fault, float* x)> run;
  std::string told;  ///< a regular expression
  unsigned blocks = 1;
};

Fault fault(const std::string& name, void (*kernel)(bool, float*), const std::string& told,
            unsigned blocks = 1) {
  return {name,
          [=](bool planted, float* x) {
            start_kernel(stream(), kernel, {blocks, 256, 1024}, planted, x);
          },
          told, blocks};
}

std::vector<Fault> faults() {
  // Who comes first decides which.
  const std::string unordered = "no barrier between|no thread of its block has written";
  return {
      fault("reverse", &reverse, unordered),
      fault("sum twice", &sum_twice, unordered),
      fault("shift", &shift, unordered),
      fault("wait for warp", &wait_for_warp, unordered),
      fault("number blocks", &number_blocks, unordered, 4),
      fault("read next block", &read_next_block, unordered, 4),
      fault("read too far", &read_too_far, "reads 4 bytes of memory outside of every allocation"),
      fault("write too far", &write_too_far,
            "writes 4 bytes of memory outside of every allocation"),
      fault("write before", &write_before, "writes 4 bytes of memory outside of every allocation"),
      {"read host",
       [](bool planted, float* x) {
         const auto of_host = std::make_unique<float>(1);
         start_kernel(stream(), &read_host, {1, 256}, planted, x, of_host.get());
       },
       "memory that is not the GPU's"},
      fault("index shared", &index_shared, "indexes out of an array's bounds"),
      fault("index dynamic", &index_dynamic, "more shared memory than its launch asked for"),
      fault("read unwritten", &read_unwritten, "that no thread of its block has written", 4),
      fault("leave early", &leave_early, "not all threads of the block reach the barrier"),
      fault("part ways", &part_ways, "while others of its block wait at"),
      fault("shuffle some", &shuffle_some, "not all lanes of the mask reach"),
      fault("read askew", &read_askew, "between multiples of its size"),
      fault("use too early", &use_too_early, unordered)};
}

TEST_CASE("each kind of fault is found, whatever the order, and nothing where there is none") {
  for (const Fault& planted : faults()) {
    CAPTURE(planted.name);
    for (int order = 0; order < 10; ++order) {
      const auto x = on_device(stream(), std::vector<float>(256 * planted.blocks, 1));
      CHECK_NOTHROW(planted.run(false, x.data()));
      CHECK_THROWS_WITH(planted.run(true, x.data()),
                        Catch::Matchers::Matches(".*(" + planted.told + ").*"));
    }
  }
}

std::array<unsigned, 256> came;
unsigned so_far = 0;
[[gnu::no_sanitize_thread]] void come(unsigned thread) { came[so_far++] = thread; }

__global__ void note_order() { come(threadIdx.x); }

TEST_CASE("threads come in another order every time, and all of them come") {
  std::set<std::array<unsigned, 256>> orders;
  for (int launch = 0; launch < 5; ++launch) {
    so_far = 0;
    start_kernel(stream(), &note_order, {1, 256});
    REQUIRE(so_far == 256);
    orders.insert(came);
    CHECK(std::set<unsigned>(came.begin(), came.end()).size() == 256);
  }
  CHECK(orders.size() == 5);
}

TEST_CASE("after a fault kernels run as before, and launches that no GPU takes are refused") {
  const auto x = on_device(stream(), std::vector<float>(256, 1));
  CHECK_THROWS_AS(start_kernel(stream(), &leave_early, {1, 256}, true, x.data()), DeviceError);
  start_kernel(stream(), &leave_early, {1, 256}, false, x.data());
  CHECK(on_host(stream(), x) == std::vector<float>(256, 1));
  for (const Grid& refused :
       {Grid{0, 256}, Grid{1, 1025}, Grid{dim3(1, 65536), 32}, Grid{1, 32, 1 << 20}})
    CHECK_THROWS_WITH(start_kernel(stream(), &leave_early, refused, false, x.data()),
                      ContainsSubstring("invalid configuration"));
}

}  // namespace
