// The memory of a device, and which of it is in use.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "execute/buffer_packing.hpp"
#include "execute/value.hpp"

namespace stratagem::execute {

/// Counts the bytes that buffers really hold: from when they are first written until they are
/// freed.
class Arena {
 public:
  /// In memory of the engine.
  template <typename Engine>
  Arena(BufferPacking packing, Engine& engine)
      : packing_(std::move(packing)),
        memory_(engine.allocate(packing_.extent)),
        held_(packing_.buffers.size()) {}

  [[nodiscard]] const BufferPacking& packing() const { return packing_; }
  /// The place of a buffer in which so many bytes lie from now on. Throws BrokenPromise where the
  /// program has less room for it.
  std::byte* hold(int buffer, std::size_t bytes);
  void release(int buffer);

  [[nodiscard]] std::size_t live() const { return live_; }
  /// The highest since the last time that it was asked to begin anew.
  [[nodiscard]] std::size_t peak() const { return peak_; }
  void begin_peak() { peak_ = live_; }

 private:
  BufferPacking packing_;
  Memory memory_;
  std::vector<std::size_t> held_;  ///< by buffer
  std::size_t live_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace stratagem::execute
