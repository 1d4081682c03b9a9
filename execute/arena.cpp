// One allocation, handed out by numbers.
#include "execute/arena.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::execute {

std::byte* Arena::hold(int buffer, std::size_t bytes) {
  const BufferPacking::Buffer& place = packing_.buffers[buffer];
  expects(bytes <= place.capacity, "a program has room for what its tasks write");
  if (bytes > held_[buffer]) {
    live_ += bytes - held_[buffer];
    held_[buffer] = bytes;
    peak_ = std::max(peak_, live_);
  }
  return memory_.get() + place.offset;
}

void Arena::release(int buffer) { live_ -= std::exchange(held_[buffer], 0); }

}  // namespace stratagem::execute
