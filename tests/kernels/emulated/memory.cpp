#include "tests/kernels/emulated/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

// Where the linker put what: constants, then static variables, shared ones among them.
extern "C" char __executable_start, __data_start, _end;

namespace stratagem::emulated {
namespace {

constexpr std::size_t granule = 256;

/// One access: when, and by whom.
struct Record {
  std::uint32_t phase = 0;
  std::uint16_t who = 0;  ///< a thread; of readers also, from `lanes` on:
  std::uint16_t syncs = 0;
};
constexpr std::uint16_t lanes = 0x400;    ///< several lanes of this warp
constexpr std::uint16_t warps = 0x800;    ///< several warps
constexpr std::uint16_t others = 0x1000;  ///< and threads of other blocks of this launch

/// The last accesses to a byte.
struct Cell {
  Record written, read;
};

template <typename T>
T* reserve(std::size_t count) {
  void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<T*>(memory);
}

/// Addresses and the cells of their bytes.
struct Region {
  Region(std::uintptr_t first, std::size_t bytes)
      : begin(first), size(bytes), cells(reserve<Cell>(bytes)) {}
  [[nodiscard]] bool has(std::uintptr_t address, std::size_t bytes) const {
    return address - begin < size && address - begin + bytes <= size;
  }
  std::uintptr_t begin;
  std::size_t size;
  Cell* cells;
};

struct Memory {
  Memory()
      : device(reinterpret_cast<std::uintptr_t>(reserve<unsigned char>(memory_size)), memory_size),
        statics(reinterpret_cast<std::uintptr_t>(&__data_start),
                static_cast<std::size_t>(&_end - &__data_start)),
        valid(memory_size / granule) {}

  Region device, statics;
  std::map<std::size_t, std::size_t> allocations;  ///< place: bytes
  std::vector<std::uint16_t> valid;                ///< bytes of each granule that are allocated
};

Memory& memory() {
  static Memory& only = *new Memory;  // never destroyed: static arrays are released at the very end
  return only;
}

std::size_t granules(std::size_t bytes) { return (bytes + granule - 1) / granule; }

/// Whether an access needs something between it and an earlier one.
bool conflicts(const Now& now, const Who& me, const Record& earlier, bool shared) {
  if (earlier.phase < now.first_of_launch) return false;
  if (earlier.phase < now.first_of_block) return !shared;
  if ((earlier.who & others) != 0) return true;
  if (earlier.phase < now.phase || earlier.who == me.thread) return false;
  if ((earlier.who & warps) != 0) return true;
  const unsigned warp = (earlier.who & lanes) != 0 ? earlier.who & 31U : earlier.who / 32U;
  return warp != me.thread / 32 || earlier.syncs >= me.syncs;
}

/// Remembers one reader more.
void add_reader(const Now& now, const Who& me, Record& read, bool shared) {
  const bool elsewhere = !shared && read.phase >= now.first_of_launch &&
                         (read.phase < now.first_of_block || (read.who & others) != 0);
  const auto mine = static_cast<std::uint16_t>(me.thread),
             warp = static_cast<std::uint16_t>(mine / 32);
  const std::uint16_t had = read.who & static_cast<std::uint16_t>(~others);
  std::uint16_t who = mine;
  if (read.phase == now.phase && had != mine) {
    const auto its_warp = static_cast<std::uint16_t>((had & lanes) != 0 ? had & 31U : had / 32U);
    if ((had & warps) != 0 || its_warp != warp)
      who = warps;
    else if (read.syncs == me.syncs)
      who = lanes | warp;
  }
  read = {.phase = now.phase,
          .who = static_cast<std::uint16_t>(who | (elsewhere ? others : 0)),
          .syncs = me.syncs};
}

Verdict judge_byte(const Now& now, const Who& me, Cell& cell, bool shared, bool writes) {
  if (shared && !writes && cell.written.phase < now.first_of_block)
    return {"shared memory that no thread of its block has written"};
  if (conflicts(now, me, cell.written, shared)) {
    if (writes && !shared)
      return {"what another thread has written, with no barrier between", true};
    return {"what another thread has written, with no barrier between"};
  }
  if (writes && conflicts(now, me, cell.read, shared))
    return {"what another thread has read, with no barrier between"};
  if (writes)
    cell.written = {now.phase, static_cast<std::uint16_t>(me.thread), me.syncs};
  else
    add_reader(now, me, cell.read, shared);
  return {};
}

bool allocated(const Memory& all, std::uintptr_t address, std::size_t size) {
  const std::size_t place = address - all.device.begin;
  for (std::size_t at = place; at < place + size; at = (at / granule + 1) * granule) {
    const std::size_t end = std::min(place + size, (at / granule + 1) * granule);
    if (end - at / granule * granule > all.valid[at / granule]) return false;
  }
  return true;
}

}  // namespace

unsigned char* shared_bytes() {
  alignas(256) static unsigned char bytes[most_shared];
  return bytes;
}

void* allocate(std::size_t bytes) {
  Memory& all = memory();
  const std::size_t wanted = (granules(bytes) + 1) * granule;
  std::size_t place = granule;  // a gap in front of the first, too
  for (const auto& [begin, size] : all.allocations) {
    if (begin - place >= wanted) break;
    place = begin + (granules(size) + 1) * granule;
  }
  if (bytes > memory_size || place + wanted > memory_size) return nullptr;
  all.allocations.emplace(place, bytes);
  for (std::size_t done = 0; done < bytes; done += granule)
    all.valid[(place + done) / granule] =
        static_cast<std::uint16_t>(std::min(granule, bytes - done));
  return reinterpret_cast<void*>(all.device.begin + place);
}

void release(void* released) {
  Memory& all = memory();
  const auto found =
      all.allocations.find(reinterpret_cast<std::uintptr_t>(released) - all.device.begin);
  if (found == all.allocations.end()) std::abort();  // released twice, or never allocated
  for (std::size_t done = 0; done < found->second; done += granule)
    all.valid[(found->first + done) / granule] = 0;
  all.allocations.erase(found);
}

std::size_t memory_left() {
  std::size_t taken = 0;
  for (const auto& [place, size] : memory().allocations) taken += size;
  return memory_size - taken;
}

bool may_be_copied(const void* from, std::size_t bytes) {
  const Memory& all = memory();
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  return address - all.device.begin >= all.device.size ||
         (all.device.has(address, bytes) && allocated(all, address, bytes));
}

Verdict judge(const Now& now, const Who& who, std::uintptr_t address, std::size_t size,
              bool writes) {
  Memory& all = memory();
  const bool on_device = all.device.has(address, size);
  const bool shared = !on_device && all.statics.has(address, size);
  if (!on_device && !shared) {
    const bool constant = address >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
                          address < all.statics.begin;
    if (constant && !writes) return {};
    return {"memory that is not the GPU's"};
  }
  if (on_device && !allocated(all, address, size)) return {"memory outside of every allocation"};
  if (size > 1 && size <= 16 && address % size != 0)
    return {"what lies between multiples of its size"};
  const std::uintptr_t in_launch = address - reinterpret_cast<std::uintptr_t>(shared_bytes());
  if (shared && in_launch < most_shared && in_launch + size > now.shared)
    return {"more shared memory than its launch asked for"};
  const Region& region = on_device ? all.device : all.statics;
  Verdict worst;
  for (std::size_t i = 0; i < size; ++i) {
    const Verdict one =
        judge_byte(now, who, region.cells[address - region.begin + i], shared, writes);
    if (one.wrong != nullptr && (worst.wrong == nullptr || !one.unless_unchanged)) worst = one;
  }
  return worst;
}

}  // namespace stratagem::emulated
