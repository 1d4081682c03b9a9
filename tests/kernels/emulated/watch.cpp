// What GCC calls for every access to memory in code compiled with -fsanitize=thread, and for an
// index out of an array's bounds with -fsanitize=bounds -fsanitize-recover=bounds. Kernels are
// compiled so, nothing else is; the sanitizers' own runtimes do not come with them.
#include <cstdint>

#include "tests/kernels/emulated/grid.hpp"

namespace {

using stratagem::emulated::touch;

/// Where an index was out of bounds, as the compiler describes it.
struct OutOfBounds {
  const char* file;
  std::uint32_t line, column;
};

}  // namespace

extern "C" {

#define WATCH(size)                                                                         \
  void __tsan_read##size(void* at) { touch(at, size, false, __builtin_return_address(0)); } \
  void __tsan_write##size(void* at) { touch(at, size, true, __builtin_return_address(0)); } \
  void __tsan_unaligned_read##size(void* at) {                                              \
    touch(at, size, false, __builtin_return_address(0));                                    \
  }                                                                                         \
  void __tsan_unaligned_write##size(void* at) {                                             \
    touch(at, size, true, __builtin_return_address(0));                                     \
  }
WATCH(1)
WATCH(2)
WATCH(4)
WATCH(8)
WATCH(16)
#undef WATCH

void __tsan_read_range(void* at, std::size_t size) {
  touch(at, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, std::size_t size) {
  touch(at, size, true, __builtin_return_address(0));
}

// On the host only: kernels have neither virtual functions nor atomics.
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void*, void*) {}
std::uint8_t __tsan_atomic8_load(const volatile std::uint8_t* at, int) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* at, std::uint32_t value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}

void __ubsan_handle_out_of_bounds(OutOfBounds* where, std::uintptr_t) {
  if (!stratagem::emulated::kernel_runs()) return;
  stratagem::emulated::complain("indexes out of an array's bounds",
                                {where->file, static_cast<int>(where->line)});
  stratagem::emulated::stop();
}

}  // extern "C"
