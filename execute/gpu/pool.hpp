// Memory of a GPU that is used again and again.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "execute/value.hpp"

namespace stratagem::execute::gpu {

/// What is given back is kept for the next of its size, since to allocate makes the host wait for
/// the GPU. All of it is used on one stream: work that still reads what was given back comes before
/// work that writes to it again.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// Goes back to the pool, which lives as long. Throws kernels::DeviceOutOfMemory, after what is
  /// kept was given back to CUDA in vain.
  Memory take(std::size_t bytes);

 private:
  std::byte* fresh(std::size_t bytes);
  void release_all();

  std::map<std::size_t, std::vector<std::byte*>> kept_;  ///< by size
};

}  // namespace stratagem::execute::gpu
