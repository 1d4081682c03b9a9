// One list of free pieces for every size.
#include "execute/gpu/pool.hpp"

#include <algorithm>

#include "kernels/device.hpp"

namespace stratagem::execute::gpu {

Pool::~Pool() { release_all(); }

void Pool::release_all() {
  for (const auto& [size, pieces] : kept_) {
    for (std::byte* const piece : pieces) kernels::release(kernels::Place::device, piece);
  }
  kept_.clear();
}

std::byte* Pool::fresh(std::size_t bytes) {
  try {
    return static_cast<std::byte*>(kernels::allocate(kernels::Place::device, bytes));
  } catch (const kernels::DeviceOutOfMemory&) {
    if (kept_.empty()) throw;
  }
  release_all();
  return static_cast<std::byte*>(kernels::allocate(kernels::Place::device, bytes));
}

Memory Pool::take(std::size_t bytes) {
  constexpr std::size_t grain = 512;
  const std::size_t size = std::max((bytes + grain - 1) / grain, std::size_t{1}) * grain;
  std::byte* piece = nullptr;
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    piece = found->second.back();
    found->second.pop_back();
  } else {
    piece = fresh(size);
  }
  return {piece,
          [pool = shared_from_this(), size](std::byte* at) { pool->kept_[size].push_back(at); }};
}

}  // namespace stratagem::execute::gpu
