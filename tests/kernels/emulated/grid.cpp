#include "tests/kernels/emulated/grid.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/kernels/emulated/memory.hpp"

// Of the sanitizers' runtime, where it is linked.
extern "C" [[gnu::weak]] void __sanitizer_symbolize_pc(void* pc, const char* format, char* text,
                                                       std::size_t size);

namespace stratagem::emulated {
namespace {

constexpr unsigned most_threads = 1024;
constexpr std::size_t stack_size = std::size_t{128} << 10;

/// What __builtin_setjmp keeps: makecontext() begins a fiber, but its swaps are calls of the
/// system.
using Registers = void* [5];

struct Copy {
  void* to;
  const void* from;  ///< nullptr: zeros
};

struct Thread {
  unsigned number = 0;
  Index index;
  std::uint16_t syncs = 0;
  bool begun = false;  ///< its fiber; it outlives the threads that it runs
  ucontext_t context{};
  Registers registers{};
  std::vector<std::vector<Copy>> copies{1};  ///< groups; the last one is open
  /// A write that is no fault if it writes what was there; looked at before anyone else goes on.
  struct Doubtful {
    const void* memory = nullptr;
    std::size_t size = 0;
    const char* wrong = nullptr;
    const void* from = nullptr;
    std::array<unsigned char, 16> before{};
  } doubtful;
};

struct SyncPoint {
  std::vector<Thread*> waiting;
  Site site;
};
struct Barrier : SyncPoint {
  bool answer = false, answers = false;  ///< of those who came, and of the last time
};
struct Warp : SyncPoint {
  unsigned mask = 0, arrived = 0;
  void* brought[32] = {};
};

/// All that runs: one block at a time.
struct Machine {
  Machine()
      : stacks(static_cast<unsigned char*>(
            mmap(nullptr, most_threads * stack_size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        threads(std::make_unique<Thread[]>(most_threads)) {
    if (stacks == MAP_FAILED) std::abort();
    if (const char* given = std::getenv("EMULATED_SEED")) seed = std::strtoull(given, nullptr, 10);
  }

  unsigned char* stacks;
  std::unique_ptr<Thread[]> threads;
  Registers scheduler{};
  std::vector<Thread*> ready;
  Barrier barrier;
  std::array<Warp, most_threads / 32> warps;
  Index block, blocks, size;
  unsigned count = 0, ended = 0;
  void (*kernel)(const void*) = nullptr;
  const void* arguments = nullptr;
  Now now{.phase = 1};
  std::uint64_t seed = 1;
  std::minstd_rand random;
  std::string fault;
  const void* fault_from = nullptr;
};

Machine m;
Thread* running = nullptr;
bool watched = false;  ///< whether a kernel's own code runs

/// While this file's code runs, which may share functions of the standard library with kernels.
struct Unwatched {
  Unwatched() { watched = false; }
  ~Unwatched() { watched = true; }
};

unsigned draw(std::size_t below) { return static_cast<unsigned>(m.random() % below); }

std::string text_of(const Site& site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}

// noipa: who calls these must not know which registers they leave alone, which is none.
[[noreturn, gnu::noipa]] void jump(Registers& to) { __builtin_longjmp(to, 1); }

/// Back to the scheduler, which resumes this thread when its turn comes.
[[gnu::noipa]] void suspend() {
  if (__builtin_setjmp(running->registers) == 0) jump(m.scheduler);
}

void settle();

/// A fiber: one thread after another, of one block after another.
void fiber() {
  for (;;) {
    watched = true;
    m.kernel(m.arguments);
    watched = false;
    settle();
    ++m.ended;
    suspend();
  }
}

[[gnu::noipa]] void resume(Thread& thread) {
  running = &thread;
  if (__builtin_setjmp(m.scheduler) == 0) {
    if (thread.begun) jump(thread.registers);
    thread.begun = true;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = m.stacks + thread.number * stack_size;
    thread.context.uc_stack.ss_size = stack_size;
    makecontext(&thread.context, &fiber, 0);
    setcontext(&thread.context);
  }
  running = nullptr;
  watched = false;
}

/// Everybody waits: for whom?
std::string why_all_wait() {
  const auto some_ended = m.ended > 0 ? ", and " + std::to_string(m.ended) + " have ended" : "";
  if (!m.barrier.waiting.empty())
    return "not all threads of the block reach the barrier at " + text_of(m.barrier.site) + ": " +
           std::to_string(m.barrier.waiting.size()) + " of " + std::to_string(m.count) + " do" +
           some_ended;
  for (const Warp& warp : m.warps)
    if (!warp.waiting.empty())
      return "not all lanes of the mask reach " + text_of(warp.site) + some_ended;
  return "nobody goes on";
}

void forget_block() {
  m.ready.clear();
  m.barrier = {};
  for (Warp& warp : m.warps) warp = {};
}

void run_block() {
  ++m.now.phase;
  m.now.first_of_block = m.now.phase;
  m.ended = 0;
  forget_block();
  for (unsigned i = 0; i < m.count; ++i) {
    Thread& thread = m.threads[i];
    thread.number = i;
    thread.index = {i % m.size.x, i / m.size.x % m.size.y, i / m.size.x / m.size.y};
    thread.syncs = 0;
    thread.copies.assign(1, {});
    m.ready.push_back(&thread);
  }
  while (m.ended < m.count && m.fault.empty()) {
    if (m.ready.empty()) {
      m.fault = why_all_wait();
      break;
    }
    std::swap(m.ready[draw(m.ready.size())], m.ready.back());
    Thread& next = *m.ready.back();
    m.ready.pop_back();
    resume(next);
  }
  if (m.fault.empty()) return;
  for (unsigned i = 0; i < m.count; ++i) m.threads[i].begun = false;  // nobody comes back to them
}

std::string text_of(const Index& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

/// The fault with the line that did it, if somebody knows that.
std::string told() {
  std::string text = m.fault;
  if (m.fault_from != nullptr && __sanitizer_symbolize_pc != nullptr) {
    std::array<char, 1024> line{};
    __sanitizer_symbolize_pc(const_cast<void*>(m.fault_from), "%S in %f", line.data(), line.size());
    text += ", at " + std::string(line.data());
  }
  m.fault.clear();
  m.fault_from = nullptr;
  return text;
}

/// Whose fault it is, and what.
void blame(const std::string& why, const void* from = nullptr) {
  m.fault = "thread " + text_of(running->index) + " of block " + text_of(m.block) + " " + why;
  m.fault_from = from;
}

/// Looks at the last doubtful write.
void settle() {
  Thread::Doubtful& doubtful = running->doubtful;
  if (doubtful.memory == nullptr) return;
  const bool same = std::memcmp(doubtful.memory, doubtful.before.data(), doubtful.size) == 0;
  doubtful.memory = nullptr;
  if (same) return;
  blame(std::string("writes ") + doubtful.wrong, doubtful.from);
  stop();
}

void judge_access(const Thread& by, const void* memory, std::size_t size, bool writes,
                  const void* from) {
  const Verdict verdict =
      judge(m.now, {by.number, by.syncs}, reinterpret_cast<std::uintptr_t>(memory), size, writes);
  if (verdict.wrong == nullptr) return;
  Thread::Doubtful& doubtful = running->doubtful;
  if (verdict.unless_unchanged && size <= doubtful.before.size()) {
    std::memcpy(doubtful.before.data(), memory, size);
    doubtful.memory = memory;
    doubtful.size = size;
    doubtful.wrong = verdict.wrong;
    doubtful.from = from;
    return;
  }
  blame((writes ? "writes " : "reads ") + std::to_string(size) + " bytes of " + verdict.wrong,
        from);
  stop();
}

}  // namespace

bool kernel_runs() { return watched; }
Index thread_index() { return running->index; }
Index block_index() { return m.block; }
Index block_size() { return m.size; }
Index grid_size() { return m.blocks; }
unsigned thread_of_block() { return running->number; }

void complain(const char* why, const Site& at) {
  watched = false;
  blame(why + (at.file != nullptr ? " at " + text_of(at) : ""), nullptr);
}

void stop() {
  running->doubtful.memory = nullptr;
  jump(m.scheduler);
}

bool meet_block(bool answer, const Site& site) {
  const Unwatched here;
  settle();
  Barrier& barrier = m.barrier;
  if (!barrier.waiting.empty() &&
      (barrier.site.line != site.line || std::strcmp(barrier.site.file, site.file) != 0)) {
    blame("waits at the barrier at " + text_of(site) + " while others of its block wait at " +
          text_of(barrier.site));
    stop();
  }
  barrier.site = site;
  barrier.answer = barrier.answer || answer;
  barrier.waiting.push_back(running);
  if (barrier.waiting.size() == m.count) {
    ++m.now.phase;
    barrier.answers = std::exchange(barrier.answer, false);
    m.ready.insert(m.ready.end(), barrier.waiting.begin(), barrier.waiting.end());
    barrier.waiting.clear();
  }
  suspend();
  return barrier.answers;
}

void meet_warp(unsigned mask, void* mine, ForAll for_all, bool orders_memory, const Site& site) {
  const Unwatched here;
  settle();
  Warp& warp = m.warps[running->number / 32];
  const unsigned lane = running->number % 32;
  if ((mask >> lane & 1U) == 0) {
    blame("is not in the mask at " + text_of(site));
    stop();
  }
  if (warp.arrived != 0 && (warp.mask != mask || warp.site.line != site.line ||
                            std::strcmp(warp.site.file, site.file) != 0)) {
    blame("is at " + text_of(site) + " while others of its warp are at " + text_of(warp.site));
    stop();
  }
  warp.mask = mask;
  warp.site = site;
  warp.arrived |= 1U << lane;
  warp.brought[lane] = mine;
  warp.waiting.push_back(running);
  if (warp.arrived == mask) {
    if (for_all != nullptr) for_all(warp.brought, mask);
    if (orders_memory)
      for (Thread* thread : warp.waiting) ++thread->syncs;
    warp.arrived = 0;
    m.ready.insert(m.ready.end(), warp.waiting.begin(), warp.waiting.end());
    warp.waiting.clear();
  }
  suspend();
}

void touch(const void* memory, std::size_t size, bool writes, const void* from) {
  if (!watched) return;
  const auto* byte = static_cast<const unsigned char*>(memory);
  if (static_cast<std::size_t>(byte - m.stacks) < most_threads * stack_size) return;
  const Unwatched here;
  settle();
  judge_access(*running, memory, size, writes, from);
  if (running->doubtful.memory == nullptr && draw(64) == 0) {
    m.ready.push_back(running);
    suspend();
  }
}

void touch_as(unsigned thread, const void* memory, std::size_t size, bool writes) {
  judge_access(m.threads[thread], memory, size, writes, __builtin_return_address(0));
}

void begin_copy(void* to, const void* from) {
  touch(to, 16, true, __builtin_return_address(0));
  if (from != nullptr) touch(from, 16, false, __builtin_return_address(0));
  const Unwatched here;
  running->copies.back().push_back({to, from});
}

void end_copies_of_group() {
  const Unwatched here;
  running->copies.emplace_back();
}

void wait_for_groups(unsigned open) {
  const Unwatched here;
  std::vector<std::vector<Copy>>& groups = running->copies;
  while (groups.size() > open + 1) {  // the last one has not ended yet
    for (const Copy& copy : groups.front()) {
      touch_as(running->number, copy.to, 16, true);
      if (copy.from == nullptr)
        std::memset(copy.to, 0, 16);
      else
        std::memcpy(copy.to, copy.from, 16);
    }
    groups.erase(groups.begin());
  }
}

std::string run(const Index& blocks, const Index& threads, std::size_t shared,
                void (*kernel)(const void*), const void* arguments) {
  m.blocks = blocks;
  m.size = threads;
  m.count = threads.x * threads.y * threads.z;
  m.kernel = kernel;
  m.arguments = arguments;
  m.random.seed(static_cast<std::minstd_rand::result_type>(m.seed * 7919 + m.now.phase));
  m.now.shared = shared;
  m.now.first_of_launch = m.now.phase + 1;
  std::vector<unsigned> order(std::size_t{blocks.x} * blocks.y * blocks.z);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), m.random);
  for (const unsigned i : order) {
    m.block = {i % blocks.x, i / blocks.x % blocks.y, i / blocks.x / blocks.y};
    run_block();
    if (!m.fault.empty()) return told();
  }
  return "";
}

}  // namespace stratagem::emulated
