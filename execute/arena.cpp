// One allocation, handed out by numbers.
#include "execute/arena.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::execute {

Arena::Arena(Placement placement)
    : placement_(std::move(placement)), held_(placement_.buffers.size()) {
  constexpr std::size_t line = 64;  // offsets are multiples of it
  const std::size_t bytes = std::max((placement_.extent + line - 1) / line, std::size_t{1}) * line;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(line, bytes)));
  if (!memory_) throw std::bad_alloc();
}

std::byte* Arena::hold(int buffer, std::size_t bytes) {
  const Placement::Buffer& place = placement_.buffers[buffer];
  expects(bytes <= place.capacity, "a program has room for what its tasks write");
  if (bytes > held_[buffer]) {
    live_ += bytes - held_[buffer];
    held_[buffer] = bytes;
    peak_ = std::max(peak_, live_);
  }
  return memory_.get() + place.offset;
}

void Arena::die(int buffer) { live_ -= std::exchange(held_[buffer], 0); }

}  // namespace stratagem::execute
