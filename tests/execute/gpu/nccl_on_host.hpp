// NCCL for tests on machines without GPUs: what moves messages is the ranks' own communicator, and
// memory of a GPU is the host's.
#pragma once

#include <atomic>

namespace stratagem::kernels {

/// Collectives that it has moved, of all ranks; and the one at which it fails, -1: none.
struct NcclOnHost {
  std::atomic<int> moved = 0;
  std::atomic<int> fails_at = -1;
};
NcclOnHost& nccl_on_host();

}  // namespace stratagem::kernels
