// The memory of an emulated GPU, with a record of who read and wrote it.
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

/// The fault of an access; nullptr if there is none. `unless_unchanged`: writing the value that was
/// there is no fault.
struct Verdict {
  const char* wrong = nullptr;
  bool unless_unchanged = false;
};

/// Checks an access and remembers it. If two threads access the same bytes and one of them writes,
/// a barrier must be between; within a warp __syncwarp() is enough. Blocks of one launch must not
/// touch each other's bytes. Each block must write shared memory before it reads it.
Verdict judge(const Now& now, const Who& who, std::uintptr_t address, std::size_t size,
              bool writes);

}  // namespace stratagem::emulated
