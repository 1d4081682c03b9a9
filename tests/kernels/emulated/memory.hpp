// The memory of an emulated GPU, and who has read and written what of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stratagem::emulated {

inline constexpr std::size_t memory_size = std::size_t{3} << 29,
                             most_shared = std::size_t{227} << 10;

/// Memory of the GPU, at a multiple of 256 bytes, with a gap behind it; nullptr where none is left.
void* allocate(std::size_t bytes);
void release(void* memory);
std::size_t memory_left();
/// Whether `bytes` from here on lie outside of the GPU's memory, or inside one allocation.
bool may_be_copied(const void* memory, std::size_t bytes);

/// Shared memory that a launch asks for. What kernels declare as __shared__ are static variables.
unsigned char* shared_bytes();

/// Phases count the blocks of all launches, which run one after another, and their barriers.
struct Now {
  std::uint32_t first_of_launch = 0, first_of_block = 0, phase = 0;
  std::size_t shared = 0;  ///< bytes of dynamic shared memory
};

/// A thread within its block. `syncs`: how often its warp has synchronised.
struct Who {
  unsigned thread = 0;
  std::uint16_t syncs = 0;
};

/// What is wrong with an access; nullptr: nothing. `unless_unchanged`: nothing either, if it writes
/// what was there.
struct Verdict {
  const char* wrong = nullptr;
  bool unless_unchanged = false;
};

/// Judges an access and remembers it. Two accesses of which one writes need a barrier between them
/// if they are of two threads, __syncwarp() at least within a warp; blocks of one launch must stay
/// out of each other's way. Shared memory is to be written before it is read, by each block.
Verdict judge(const Now& now, const Who& who, std::uintptr_t address, std::size_t size,
              bool writes);

}  // namespace stratagem::emulated
