// Runs kernels on this processor. The threads of a block are fibers, in a random order that changes
// at every barrier and shuffle, and sometimes between. Blocks run one after another, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stratagem::emulated {

struct Index {
  unsigned x = 1, y = 1, z = 1;
};

/// The indices of the running thread. Constant, as far as one kernel can see.
[[gnu::const]] Index thread_index();
[[gnu::const]] Index block_index();
[[gnu::const]] Index block_size();
[[gnu::const]] Index grid_size();
[[gnu::const]] unsigned thread_of_block();

/// The place of a barrier or a shuffle in the source.
struct Site {
  const char* file = nullptr;
  int line = 0;
};

/// A barrier: all threads of the block must reach it, or it is a fault. Returns true if any of them
/// passes true.
bool meet_block(bool answer, const Site& site);

/// What each lane brought to a synchronisation; the last to come does what is to be done for all.
using OfLanes = void* const (&)[32];
using ForAll = void (*)(OfLanes of_lanes, unsigned mask);
/// The lanes of `mask`, this one among them, meet here. Only some meetings order memory.
void meet_warp(unsigned mask, void* mine, ForAll for_all, bool orders_memory, const Site& site);

/// Reports an access by a thread of the running block, the current one by default; `from`: the code
/// that accesses. Does nothing while no kernel runs.
void touch(const void* memory, std::size_t size, bool writes, const void* from = nullptr);
void touch_as(unsigned thread, const void* memory, std::size_t size, bool writes);

/// Records the fault of the running thread; then stop() ends the kernel. These are two functions,
/// since nothing on the fibers' stacks is destroyed.
void complain(const char* why, const Site& at = {});
[[noreturn]] void stop();
[[nodiscard]] bool kernel_runs();

/// 16 bytes on their way to shared memory, or zeros, while the thread goes on.
void begin_copy(void* to, const void* from);
void end_copies_of_group();
void wait_for_groups(unsigned open);

/// Runs a kernel; returns the fault that ended it, or "". Every launch has its own order, and
/// another one where the environment's EMULATED_SEED is another.
std::string run(const Index& blocks, const Index& threads, std::size_t shared,
                void (*kernel)(const void* arguments), const void* arguments);

}  // namespace stratagem::emulated
